"""Mean and deviation over seeds, Welch's test over seeds, and the paired bootstrap over test pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Mean and standard deviation of scores over seeds.

    Attributes:
        mean: Mean; None if a score is undefined or there is none.
        deviation: Sample standard deviation (n - 1); None for a single run.
        runs: Number of runs, n.
    """

    mean: float | None
    deviation: float | None
    runs: int


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Difference between two groups, with interval and p value.

    Attributes:
        value: Difference of the means; None if undefined.
        low: Lower end of the 95 % interval.
        high: Upper end of the interval.
        p: Two-sided p value of Welch's test; for the bootstrap, twice the smaller share of resamples on one side of 0.
        undefined: Why there is no interval.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    p: float | None = None
    undefined: str = ""


def spread(scores: Sequence[float | None]) -> Spread:
    """Return the mean and standard deviation, undefined if one score is."""
    defined = [score for score in scores if score is not None]
    if not defined or len(defined) < len(scores):
        return Spread(mean=None, deviation=None, runs=len(scores))
    deviation = float(np.std(defined, ddof=1)) if len(defined) > 1 else None
    return Spread(mean=float(np.mean(defined)), deviation=deviation, runs=len(defined))


def welch(scores: Sequence[float | None], baseline: Sequence[float | None]) -> Difference:
    """Return the difference of means over independent seeds, with Welch's interval and test.

    It estimates the effect of the training procedure: the results of other seeds on the same test sets.

    Args:
        scores: Score of each seed.
        baseline: Score of each seed of the baseline.
    """
    if not scores or not baseline or any(value is None for value in (*scores, *baseline)):
        return Difference(value=None, undefined="a score is undefined")
    a, b = np.array(scores, dtype=np.float64), np.array(baseline, dtype=np.float64)
    value = float(a.mean() - b.mean())
    if min(len(a), len(b)) < 2:
        return Difference(value=value, undefined="one seed: no standard deviation")
    if np.ptp(a) == 0 and np.ptp(b) == 0:
        return Difference(value=value, undefined="all seeds have the same score: no standard deviation")
    test = stats.ttest_ind(a, b, equal_var=False)
    interval = test.confidence_interval(0.95)
    return Difference(value=value, low=float(interval.low), high=float(interval.high), p=float(test.pvalue))


def resampled_spearman(gold: np.ndarray, scores: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the Spearman correlations of resampled pairs, given how often each pair was drawn.

    The values are sorted once: with weights, the mean rank of a group of ties is the weight before it plus half of
    (its own weight + 1).

    Args:
        gold: Shape (n,).
        scores: Shape (n,).
        weights: Integers of shape (m, n), one row per resample.

    Returns:
        Shape (m,); NaN for a resample in which one of the two is constant.
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
    """Return the difference of average Spearman (times 100) between two groups of models, by paired bootstrap.

    It estimates the effect of the test sets: the results of the same models on other pairs of the same kind. All models
    see the same resamples; the score of a group is the mean over its models.

    Args:
        golds: Gold scores of each test set, of shape (pairs,).
        systems: For each model of the group, its cosines on each test set.
        baselines: The same for the baseline group.
        resamples: Number of bootstrap samples.
        seed: Seed of the resampling.
    """
    if not golds or not systems or not baselines:
        return Difference(value=None, undefined="nothing to compare")
    rng = np.random.default_rng(seed)
    differences, value = np.zeros(resamples), 0.0
    for task, gold in enumerate(golds):
        once = np.ones((1, len(gold)), dtype=np.int64)
        value += _score_difference(gold, systems, baselines, task, once)[0]
        block = max(1, 2_000_000 // len(gold))  # bounds the memory
        for start in range(0, resamples, block):
            count = min(block, resamples - start)
            weights = rng.multinomial(len(gold), np.full(len(gold), 1 / len(gold)), size=count)
            differences[start : start + count] += _score_difference(gold, systems, baselines, task, weights)
    value, differences = 100 * value / len(golds), 100 * differences / len(golds)
    if not np.isfinite(value):
        return Difference(value=None, undefined="a correlation is undefined")
    differences = differences[np.isfinite(differences)]
    if len(differences) < resamples / 2:
        return Difference(value=float(value), undefined="most resamples have no correlation")
    low, high = np.percentile(differences, [2.5, 97.5])
    tail = min((differences <= 0).mean(), (differences >= 0).mean())
    p = min(1.0, 2 * max(float(tail), 1 / len(differences)))
    return Difference(value=float(value), low=float(low), high=float(high), p=p)


def _score_difference(
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
