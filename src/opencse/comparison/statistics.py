"""Means over seeds, Welch's test over seeds, and the bootstrap over pairs; each says when it has nothing to go by."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Scores over seeds.

    Attributes:
        mean: Their mean; None where one is undefined or there is none.
        deviation: Their standard deviation with n - 1; None for a single run.
        runs: n.
    """

    mean: float | None
    deviation: float | None
    runs: int


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How much one group is above another.

    Attributes:
        value: The difference of the means; None where undefined.
        low: Lower end of the 95 % interval.
        high: Its upper end.
        p: Two-sided p value of Welch's test; for the bootstrap twice the smaller share of resamples on one side of 0.
        undefined: Why there is no interval.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    undefined: str = ""


def spread(scores: Sequence[float | None]) -> Spread:
    """Mean and standard deviation; undefined as soon as one score is."""
    defined = [score for score in scores if score is not None]
    if not defined or len(defined) < len(scores):
        return Spread(mean=None, deviation=None, runs=len(scores))
    deviation = float(np.std(defined, ddof=1)) if len(defined) > 1 else None
    return Spread(mean=float(np.mean(defined)), deviation=deviation, runs=len(defined))


def welch(scores: Sequence[float | None], baseline: Sequence[float | None]) -> Difference:
    """Difference of means over independent seeds, with Welch's interval and test.

    It speaks of the training procedure: what other seeds would give on these test sets.
    """
    if not scores or not baseline or any(value is None for value in (*scores, *baseline)):
        return Difference(value=None, undefined="a score is undefined")
    a, b = np.array(scores, dtype=np.float64), np.array(baseline, dtype=np.float64)
    value = float(a.mean() - b.mean())
    if min(len(a), len(b)) < 2:
        return Difference(value=value, undefined="one seed: no spread to judge by")
    if np.ptp(a) == 0 and np.ptp(b) == 0:
        return Difference(value=value, undefined="all seeds score alike: no spread to judge by")
    test = stats.ttest_ind(a, b, equal_var=False)
    interval = test.confidence_interval(0.95)
    return Difference(value=value, low=float(interval.low), high=float(interval.high), p=float(test.pvalue))


def resampled_spearman(gold: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Spearman correlations of resampled pairs, given how often each pair was drawn.

    Ranks follow from sorting once: with weights, the mean rank of a group of ties is the weight before it plus half of
    (its own weight + 1).

    Args:
        gold: (n,).
        scores: (n,).
        weights: (m, n) whole numbers, one row per resample.

    Returns:
        (m,); NaN for a resample in which one of the two is constant.
    """
    x, y = _weighted_ranks(gold, weights), _weighted_ranks(scores, weights)
    total = weights.sum(axis=1, keepdims=True)
    x -= (weights * x).sum(axis=1, keepdims=True) / total
    y -= (weights * y).sum(axis=1, keepdims=True) / total
    wx = weights * x
    with np.errstate(invalid="ignore", divide="ignore"):
        return (wx * y).sum(axis=1) / np.sqrt((wx * x).sum(axis=1) * (weights * y * y).sum(axis=1))


def _weighted_ranks(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    order = np.argsort(values, kind="stable")
    starts = np.flatnonzero(np.concatenate(([True], np.diff(values[order]) != 0)))
    own = np.add.reduceat(weights[:, order], starts, axis=1).astype(np.float64)
    ranks = np.cumsum(own, axis=1) - own + (own + 1) / 2
    group = np.empty(len(values), dtype=np.int64)
    group[order] = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(values))))
    return ranks[:, group]


def paired_bootstrap(
    golds: Sequence[np.ndarray],
    systems: Sequence[Sequence[np.ndarray]],
    baselines: Sequence[Sequence[np.ndarray]],
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> Difference:
    """Difference of average Spearman (times 100) between two groups of models, resampling the pairs of every test set.

    It speaks of the test sets: what other pairs of the same kind would give for these very models. All models see the
    same resamples; a group's score is the mean over its models.

    Args:
        golds: Gold scores of each test set.
        systems: For each model of the group its cosines on each test set.
        baselines: The same of the group compared with.
        resamples: Bootstrap samples.
        seed: Of the samples.
    """
    if not golds or not systems or not baselines:
        return Difference(value=None, undefined="nothing to compare")
    chance = np.random.default_rng(seed)
    drawn, value = np.zeros(resamples), 0.0
    for task, gold in enumerate(golds):
        once = np.ones((1, len(gold)), dtype=np.int64)
        value += _gap(gold, systems, baselines, task, once)[0]
        block = max(1, 2_000_000 // len(gold))  # bounds the memory
        for start in range(0, resamples, block):
            count = min(block, resamples - start)
            weights = chance.multinomial(len(gold), np.full(len(gold), 1 / len(gold)), size=count)
            drawn[start : start + count] += _gap(gold, systems, baselines, task, weights)
    value, drawn = 100 * value / len(golds), 100 * drawn / len(golds)
    if not np.isfinite(value):
        return Difference(value=None, undefined="a correlation is undefined")
    drawn = drawn[np.isfinite(drawn)]
    if len(drawn) < resamples / 2:
        return Difference(value=float(value), undefined="most resamples have no correlation")
    low, high = np.percentile(drawn, [2.5, 97.5])
    tail = min((drawn <= 0).mean(), (drawn >= 0).mean())
    p = min(1.0, 2 * max(float(tail), 1 / len(drawn)))
    return Difference(value=float(value), low=float(low), high=float(high), p=p)


def _gap(
    gold: np.ndarray,
    systems: Sequence[Sequence[np.ndarray]],
    baselines: Sequence[Sequence[np.ndarray]],
    task: int,
    weights: np.ndarray,
) -> np.ndarray:
    means = [
        np.mean([resampled_spearman(gold, model[task], weights) for model in group], axis=0)
        for group in (systems, baselines)
    ]
    return np.asarray(means[0] - means[1])
