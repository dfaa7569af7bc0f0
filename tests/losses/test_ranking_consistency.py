from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencse.losses import RankingConsistencyLoss
from tests.losses.checks import draw, run

VIEWS = ("anchor", "twin")


@given(st.integers(0, 10_000), st.floats(0.0, 3.0), st.floats(0.01, 1.0))
@settings(deadline=None, max_examples=50)
def test_between_zero_and_log_two_and_symmetric(seed: int, spread: float, temperature: float) -> None:
    arrays = draw(VIEWS, 6, seed=seed, spread=spread)
    loss = run(RankingConsistencyLoss(temperature=temperature), arrays)[0]
    assert -1e-12 <= loss <= math.log(2) + 1e-12
    swapped = {"anchor": arrays["twin"], "twin": arrays["anchor"]}
    assert run(RankingConsistencyLoss(temperature=temperature), swapped)[0] == pytest.approx(loss, abs=1e-12)


def test_zero_for_equal_lists_where_the_coded_form_is_not() -> None:
    arrays = draw(("anchor",), 6)
    same = {"anchor": arrays["anchor"], "twin": arrays["anchor"]}
    loss, gradients, _ = run(RankingConsistencyLoss(), same)
    assert loss == pytest.approx(0, abs=1e-12)
    assert np.abs(gradients["anchor"]).max() < 1e-9
    loss, gradients, _ = run(RankingConsistencyLoss(form="entropy", temperature=0.3), same)
    assert loss < -0.01
    assert np.abs(gradients["anchor"]).max() > 1e-3


def test_the_coded_form_is_named_as_what_it_is() -> None:
    assert "entropy" in RankingConsistencyLoss(form="entropy").warnings()[0]
    assert RankingConsistencyLoss().warnings() == []
