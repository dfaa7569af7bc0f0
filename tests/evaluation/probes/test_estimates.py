from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import rankdata

from opencse.evaluation.probes.estimates import Estimate, mean_estimate, partial_spearman, rate_estimate, weighted


def test_interval_of_a_rate_is_near_the_binomial_one():
    values = np.repeat([1.0, 0.0], [60, 140])
    estimate = mean_estimate(values)
    assert estimate.value == pytest.approx(0.3)
    half = 1.96 * (0.3 * 0.7 / 200) ** 0.5
    assert estimate.low == pytest.approx(0.3 - half, abs=0.01)
    assert estimate.high == pytest.approx(0.3 + half, abs=0.01)
    assert mean_estimate(values) == estimate
    share = rate_estimate(0, 10)
    assert (share.value, share.low, share.high) == pytest.approx((0, 0, 0.2775), abs=1e-4)


def test_nothing_is_undefined_by_name():
    assert mean_estimate(np.zeros(0), empty="no pair") == Estimate(value=None, rows=0, undefined="no pair")


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 10_000), st.integers(4, 40))
def test_partial_correlation_is_that_of_regression_residuals(seed, count):
    rng = np.random.default_rng(seed)
    x, y, z = rng.integers(0, 6, (3, count)).astype(float)
    estimate = partial_spearman(x, y, z)
    if estimate.value is None:
        assert estimate.undefined
        return
    design = np.column_stack([np.ones(count), rankdata(z)])
    residuals = [r - design @ np.linalg.lstsq(design, r, rcond=None)[0] for r in (rankdata(x), rankdata(y))]
    assert estimate.value == pytest.approx(np.corrcoef(*residuals)[0, 1], abs=1e-8)


@pytest.mark.parametrize(
    ("x", "y", "z", "reason"),
    [
        ([1, 1, 1], [1, 2, 3], [1, 2, 3], "similarities"),
        ([1, 2, 3], [2, 2, 2], [1, 2, 3], "differences"),
        ([1, 2, 3], [1, 2, 3], [4, 4, 4], "gold"),
        ([1, 2, 3], [3, 1, 2], [1, 2, 3], "completely"),
        ([1, 2], [3, 1], [1, 2], "fewer than 3"),
    ],
)
def test_partial_correlation_says_why_it_is_undefined(x, y, z, reason):
    estimate = partial_spearman(*(np.array(v, dtype=float) for v in (x, y, z)))
    assert estimate.value is None
    assert reason in estimate.undefined


def test_an_average_with_an_undefined_part_is_undefined():
    some = Estimate(value=0.5, rows=10)
    assert weighted([some, Estimate(value=0.8, rows=30)]).value == pytest.approx(0.725)
    assert weighted([some, Estimate(value=None, rows=3, undefined="x")]).undefined == "undefined in 1 of 2 sets"
    assert weighted([]).undefined == "no set"
