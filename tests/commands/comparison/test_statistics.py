from __future__ import annotations

import numpy as np
import pytest

from opencse.commands.comparison.statistics import paired_bootstrap, spread


def test_spread_of_one_and_of_none():
    assert (spread([76.0]).mean, spread([76.0]).deviation) == (76.0, None)
    assert spread([1.0, 3.0]).deviation == pytest.approx(2**0.5)
    assert spread([76.0, None]).mean is None
    assert spread([]).mean is None


def models(noise: float, seed: int, golds):
    rng = np.random.default_rng(seed)
    return [gold + noise * rng.normal(size=len(gold)) for gold in golds]


def test_the_bootstrap_finds_a_difference_and_no_difference():
    golds = [np.random.default_rng(i).integers(0, 26, 300) / 5 for i in range(2)]
    good, bad = models(0.5, 1, golds), models(2.0, 2, golds)
    low, high = paired_bootstrap(golds, [good], [bad], resamples=200)
    assert 0 < low < high
    assert paired_bootstrap(golds, [good, bad], [bad, good], resamples=100) == pytest.approx((0, 0))
    assert paired_bootstrap(golds, [good], [bad], resamples=200) == (low, high)


def test_the_bootstrap_of_constant_scores_is_undefined():
    gold = [np.arange(5.0)]
    assert paired_bootstrap(gold, [[np.zeros(5)]], [[np.arange(5.0)]], resamples=100) is None
