from __future__ import annotations

import numpy as np
import pytest

from opencse.evaluation.probes.estimates import Estimate, mean_estimate, rate_estimate, weighted


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


def test_an_average_with_an_undefined_part_is_undefined():
    some = Estimate(value=0.5, rows=10)
    assert weighted([some, Estimate(value=0.8, rows=30)]).value == pytest.approx(0.725)
    assert weighted([some, Estimate(value=None, rows=3, undefined="x")]).undefined == "undefined in 1 of 2 sets"
    assert weighted([]).undefined == "no set"
