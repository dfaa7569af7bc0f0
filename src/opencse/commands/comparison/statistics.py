"""Mean and deviation over seeds, and the paired bootstrap over test pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opencse.evaluation.correlation import spearman


@dataclass(frozen=True, kw_only=True)
class Spread:
    """Mean and standard deviation of scores over seeds.

    Attributes:
        mean: Mean; None if a score is undefined or there is none.
        deviation: Sample standard deviation (n - 1); None for a single run.
    """

    mean: float | None
    deviation: float | None


def spread(scores: Sequence[float | None]) -> Spread:
    """Return the mean and standard deviation, undefined if one score is."""
    defined = [score for score in scores if score is not None]
    if not defined or len(defined) < len(scores):
        return Spread(mean=None, deviation=None)
    deviation = float(np.std(defined, ddof=1)) if len(defined) > 1 else None
    return Spread(mean=float(np.mean(defined)), deviation=deviation)


def paired_bootstrap(
    golds: Sequence[np.ndarray],
    systems: Sequence[Sequence[np.ndarray]],
    baselines: Sequence[Sequence[np.ndarray]],
    *,
    resamples: int = 1000,
    seed: int = 0,
) -> tuple[float, float] | None:
    """Return the 95 % interval of the difference of average Spearman (times 100) between two groups of models.

    It estimates the effect of the test sets: the results of the same models on other pairs of the same kind. All models
    see the same resamples; the score of a group is the mean over its models.

    Args:
        golds: Gold scores of each test set, of shape (pairs,).
        systems: For each model of the group, its cosines on each test set.
        baselines: The same for the baseline group.
        resamples: Number of bootstrap samples.
        seed: Seed of the resampling.

    Returns:
        Its ends; None if most resamples have no correlation.
    """
    rng = np.random.default_rng(seed)
    differences = np.zeros(resamples)
    for task, gold in enumerate(golds):
        n = len(gold)
        for i in range(resamples):
            rows = np.repeat(np.arange(n), rng.multinomial(n, np.full(n, 1 / n)))
            ours, theirs = (
                np.mean([_spearman(gold[rows], model[task][rows]) for model in group]) for group in (systems, baselines)
            )
            differences[i] += 100 * (ours - theirs) / len(golds)
    differences = differences[np.isfinite(differences)]
    if len(differences) < resamples / 2:
        return None
    low, high = np.percentile(differences, [2.5, 97.5])
    return float(low), float(high)


def _spearman(gold: np.ndarray, cosines: np.ndarray) -> float:
    value = spearman(gold, cosines)
    return np.nan if value is None else value
