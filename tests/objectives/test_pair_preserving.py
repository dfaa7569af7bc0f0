from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from opencse.objectives import PairPreserving
from tests.objectives.checks import check, draw, run
from tests.reference.preservation import pair_preserving

VIEWS = ("anchor", "negation", "related")
PAIRS = (("anchor", "related"), ("negation", "related"))
SPECIAL = (0, 1, 2)
ROWS = 6


def worded(seed: int) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Token ids and masks, with special tokens at both ends; what lies behind the end looks like real tokens."""
    random = np.random.default_rng(seed)
    found = {}
    for view in VIEWS:
        ids = torch.tensor(random.integers(3, 12, size=(ROWS, 8)))
        lengths = torch.tensor(random.integers(3, 9, size=ROWS))
        ids[:, 0] = 1
        ids[torch.arange(ROWS), lengths - 1] = 2
        found[view] = ids, (torch.arange(8) < lengths[:, None]).long()
    return found


def bag(term: PairPreserving) -> torch.nn.Module | None:
    return term.module(SimpleNamespace(tokenizer=SimpleNamespace(all_special_ids=list(SPECIAL))))


@pytest.mark.parametrize("beta", [0.0, 0.15])
@pytest.mark.parametrize("seed", range(3))
def test_value_and_gradient_equal_the_transcription(beta, seed) -> None:
    arrays, teacher = draw(VIEWS, ROWS, seed=seed), draw(VIEWS, ROWS, seed=seed + 50, width=7)
    has = {"anchor": np.ones(ROWS, bool), "negation": np.arange(ROWS) % 2 == 0, "related": np.arange(ROWS) != 4}
    tokens = worded(seed)
    pieces = {}
    for view, (ids, mask) in tokens.items():
        arrays[view][~has[view]] = 0
        mask[torch.tensor(~has[view])] = 0
        pieces[view] = [set(ids[i][mask[i].bool()].tolist()) - set(SPECIAL) for i in range(ROWS)]
    term = PairPreserving(pairs=PAIRS, less_overlap=beta)
    check(
        term,
        lambda x: pair_preserving(x, teacher, has, PAIRS, pieces, beta),
        arrays,
        has,
        teachers={"teacher": teacher},
        tokens=tokens,
        modules={term.name: bag(term)},
    )


def test_a_copy_of_the_teacher_loses_nothing() -> None:
    arrays = draw(VIEWS, ROWS)
    assert run(PairPreserving(pairs=PAIRS), arrays, teachers={"teacher": arrays})[0] == pytest.approx(0, abs=1e-12)


def test_wording_in_common_is_taken_back() -> None:
    arrays, tokens = draw(VIEWS, ROWS), worded(1)
    tokens["related"] = tokens["anchor"]
    term = PairPreserving(pairs=(("anchor", "related"),), less_overlap=0.2)
    loss = run(term, arrays, teachers={"teacher": arrays}, tokens=tokens, modules={term.name: bag(term)})[0]
    assert loss == pytest.approx(0.2**2)  # the same words: the whole of it


def test_wording_is_read_only_where_it_counts() -> None:
    term = PairPreserving(pairs=PAIRS)
    assert term.tokens == ()
    assert bag(term) is None
    assert PairPreserving(pairs=PAIRS, less_overlap=0.1).tokens == ("anchor", "related", "negation")
