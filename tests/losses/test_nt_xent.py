from __future__ import annotations

import numpy as np
import pytest
import torch

from opencse.losses import NTXentLoss
from tests.losses.checks import check, check_degenerate, draw, run
from tests.reference.nt_xent import nt_xent

VIEWS = ("anchor", "twin", "anchor_2", "near", "far")


@pytest.mark.parametrize("absent", [False, True])
@pytest.mark.parametrize(
    "pairs", [(("anchor", "twin"),), (("anchor", "twin"), ("anchor_2", "near", "far"))]
)
def test_value_and_gradient_are_those_of_the_formula(pairs, absent: bool) -> None:
    loss = NTXentLoss(pairs=pairs, temperature=0.3)
    arrays = {view: rows for view, rows in draw(VIEWS, rows=4).items() if view in loss.views}
    has = {view: np.ones(4, bool) for view in loss.views}
    if absent:
        has["twin"][1] = False
        has[pairs[-1][0]][3] = False

    def slow(x) -> float:
        listed = [(x[pair[0]], [x[view] for view in pair[1:]]) for pair in pairs]
        there = [np.logical_and.reduce([has[view] for view in pair]) for pair in pairs]
        return nt_xent(listed, t=0.3, has=there)

    check(loss, slow, arrays, has)


def test_one_pair_has_nothing_to_choose_from() -> None:
    arrays = draw(("anchor", "twin"), rows=1)
    value, _, output = run(NTXentLoss(), arrays)
    assert value == 0
    assert "negative" not in output.reports


def test_it_is_safe_for_odd_batches() -> None:
    check_degenerate(NTXentLoss(pairs=(("anchor", "twin", "near"),)))


def test_anchors_are_negatives_of_each_other() -> None:
    same = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    apart = torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    equal_anchors = NTXentLoss(temperature=0.1)(same, apart).value
    assert equal_anchors > NTXentLoss(temperature=0.1)(apart, apart).value


@pytest.mark.parametrize("pairs", [(), (("anchor",),)])
def test_a_pair_needs_a_positive(pairs) -> None:
    with pytest.raises(ValueError, match="at least one positive"):
        NTXentLoss(pairs=pairs)
