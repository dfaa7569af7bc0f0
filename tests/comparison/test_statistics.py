from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from opencse.comparison import paired_bootstrap, spread, welch
from opencse.comparison.statistics import resampled_spearman


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 10_000), st.integers(2, 30))
def test_weighted_ranks_give_the_spearman_of_the_repeated_rows(seed, count):
    chance = np.random.default_rng(seed)
    gold, scores = chance.integers(0, 5, count).astype(float), chance.integers(0, 8, count) / 7
    weights = chance.multinomial(count, np.full(count, 1 / count), size=3)
    for row, found in zip(weights, resampled_spearman(gold, scores, weights), strict=True):
        drawn = np.repeat(np.arange(count), row)
        if np.ptp(gold[drawn]) == 0 or np.ptp(scores[drawn]) == 0:
            assert not np.isfinite(found)
        else:
            assert found == pytest.approx(stats.spearmanr(gold[drawn], scores[drawn])[0], abs=1e-9)


def test_welch_is_scipys():
    a, b = [77.1, 76.4, 77.9], [75.0, 76.0, 75.2, 75.9]
    found = welch(a, b)
    expected = stats.ttest_ind(a, b, equal_var=False)
    assert found.value == pytest.approx(np.mean(a) - np.mean(b))
    assert found.p == pytest.approx(expected.pvalue)
    assert found.low < found.value < found.high
    assert (found.low > 0) == (found.p < 0.05)


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        ([77.0], [75.0, 76.0], "one seed"),
        ([77.0, 77.0], [75.0, 75.0], "no standard deviation"),
        ([77.0, None], [1.0, 2.0], "undefined"),
    ],
)
def test_welch_says_what_it_cannot_judge(a, b, reason):
    found = welch(a, b)
    assert reason in found.undefined
    assert found.low is found.p is None


def test_spread_of_one_and_of_none():
    assert (spread([76.0]).mean, spread([76.0]).deviation) == (76.0, None)
    assert spread([1.0, 3.0]).deviation == pytest.approx(2**0.5)
    assert spread([76.0, None]).mean is None
    assert spread([]).mean is None


def models(noise: float, seed: int, golds):
    chance = np.random.default_rng(seed)
    return [gold + noise * chance.normal(size=len(gold)) for gold in golds]


def test_the_bootstrap_finds_a_difference_and_no_difference():
    golds = [np.random.default_rng(i).integers(0, 26, 300) / 5 for i in range(2)]
    good, bad = models(0.5, 1, golds), models(2.0, 2, golds)
    found = paired_bootstrap(golds, [good], [bad], resamples=500)
    expected = np.mean(
        [stats.spearmanr(g, a)[0] - stats.spearmanr(g, b)[0] for g, a, b in zip(golds, good, bad, strict=True)]
    )
    assert found.value == pytest.approx(100 * expected)
    assert 0 < found.low < found.value < found.high
    assert found.p < 0.01
    same = paired_bootstrap(golds, [good, bad], [bad, good], resamples=200)
    assert (same.value, same.low, same.high, same.p) == (pytest.approx(0), pytest.approx(0), pytest.approx(0), 1.0)
    assert paired_bootstrap(golds, [good], [bad], resamples=500) == found


def test_the_bootstrap_of_constant_scores_is_undefined():
    gold = [np.arange(5.0)]
    found = paired_bootstrap(gold, [[np.zeros(5)]], [[np.arange(5.0)]], resamples=100)
    assert found.value is None
    assert found.undefined
