from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencse.losses import RankingConsistency
from tests.losses.checks import check, draw, run
from tests.reference.ranking import ranking_consistency

VIEWS = ("anchor", "twin")


@pytest.mark.parametrize("form", ["jensen_shannon", "entropy"])
@pytest.mark.parametrize("temperature", [0.05, 0.3])
def test_value_and_gradient_equal_the_transcription(form: str, temperature: float) -> None:
    rows = np.array([1, 1, 0, 1, 1, 1], bool)
    arrays = draw(VIEWS, 6)
    arrays["twin"][~rows] = 0
    term = RankingConsistency(form=form, temperature=temperature)
    slow = lambda x: ranking_consistency(x["anchor"], x["twin"], rows, temperature, form == "entropy")  # noqa: E731
    check(term, slow, arrays, {"twin": rows})


@given(st.integers(0, 10_000), st.floats(0.0, 3.0), st.floats(0.01, 1.0))
@settings(deadline=None, max_examples=50)
def test_between_zero_and_log_two_and_symmetric(seed: int, spread: float, temperature: float) -> None:
    arrays = draw(VIEWS, 6, seed=seed, spread=spread)
    loss = run(RankingConsistency(temperature=temperature), arrays)[0]
    assert -1e-12 <= loss <= math.log(2) + 1e-12
    swapped = {"anchor": arrays["twin"], "twin": arrays["anchor"]}
    assert run(RankingConsistency(temperature=temperature), swapped)[0] == pytest.approx(loss, abs=1e-12)


def test_zero_for_equal_lists_where_the_coded_form_is_not() -> None:
    arrays = draw(("anchor",), 6)
    same = {"anchor": arrays["anchor"], "twin": arrays["anchor"]}
    loss, gradients, _ = run(RankingConsistency(), same)
    assert loss == pytest.approx(0, abs=1e-12)
    assert np.abs(gradients["anchor"]).max() < 1e-9
    loss, gradients, _ = run(RankingConsistency(form="entropy", temperature=0.3), same)
    assert loss < -0.01
    assert np.abs(gradients["anchor"]).max() > 1e-3


def test_the_coded_form_is_named_as_what_it_is() -> None:
    assert "entropy" in RankingConsistency(form="entropy").warnings()[0]
    assert RankingConsistency().warnings() == []
