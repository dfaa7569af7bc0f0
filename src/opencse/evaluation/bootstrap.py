"""Paired bootstrap: does one model score higher than another on the same rows, beyond chance?

The rows of a test set (pairs of sentences, queries, triplets) are drawn again with replacement, and
both models are scored on the same draw. The interval therefore covers what another sample of rows
would change, and not what another training run would.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from opencse.evaluation.sts import spearman

RESAMPLES = 1000
"""How often the rows are drawn again."""

# Draws that are scored at a time, which bounds the memory.
_AT_A_TIME = 50


@dataclass(frozen=True, kw_only=True, eq=False)
class PairScores:
    """Scores of a model for each pair of a set, next to those of people.

    Attributes:
        gold: Scores by people, (n,).
        predicted: Similarities by the model, (n,).
        seed: Seed of the draws. Models that are compared take the same one, and sets that are
            averaged different ones.
    """

    gold: np.ndarray
    predicted: np.ndarray
    seed: int = 0

    @cached_property
    def draws(self) -> np.ndarray:
        """Spearman correlation in each draw of the pairs; NaN if a draw has none."""
        gold = _RankedColumn(self.gold)
        predicted = _RankedColumn(self.predicted)
        draws = []
        for counts in resampled_counts(len(self.gold), self.seed):
            draws.append(_correlations(gold.ranks(counts), predicted.ranks(counts), counts))
        return np.concatenate(draws)


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The score of a second model minus that of a first one, on the same rows.

    Attributes:
        value: The difference.
        low: Lower end of its 95 % interval.
        high: Upper end.
    """

    value: float
    low: float
    high: float

    @property
    def beyond_chance(self) -> bool:
        """Whether the interval excludes 0: one rule for better and for worse."""
        return self.low > 0 or self.high < 0


def mean_difference(
    before: Sequence[float] | np.ndarray, after: Sequence[float] | np.ndarray
) -> Difference:
    """Compare two means over the same n rows, such as two accuracies.

    Args:
        before: What the first model gets on each row, such as 0 or 1, (n,).
        after: The same of the second model.
    """
    gained = np.asarray(after, dtype=np.float64) - np.asarray(before, dtype=np.float64)
    draws = [(counts @ gained) / len(gained) for counts in resampled_counts(len(gained))]
    return _difference(float(gained.mean()), np.concatenate(draws))


def correlation_difference(before: PairScores, after: PairScores) -> Difference | None:
    """Compare two Spearman correlations over the same n pairs; None if one is undefined.

    Args:
        before: The scores of the first model.
        after: Those of the second model, of the same pairs.
    """
    first = spearman(before.gold, before.predicted)
    second = spearman(after.gold, after.predicted)
    if first is None or second is None:
        return None
    return _difference(second - first, after.draws - before.draws)


def interval(draws: np.ndarray) -> tuple[float, float]:
    """Return the 95 % percentile interval of draws."""
    low, high = np.nanpercentile(draws, [2.5, 97.5])
    return float(low), float(high)


def resampled_counts(rows: int, seed: int = 0) -> Iterator[np.ndarray]:
    """Yield how often each of n rows is drawn, (draws, n), until there are `RESAMPLES` draws."""
    rng = np.random.default_rng(seed)
    for start in range(0, RESAMPLES, _AT_A_TIME):
        draws = min(_AT_A_TIME, RESAMPLES - start)
        drawn = rng.integers(0, rows, (draws, rows))
        # One bin for each row of each draw.
        places = drawn + rows * np.arange(draws)[:, None]
        counts = np.bincount(places.ravel(), minlength=draws * rows)
        yield counts.reshape(draws, rows).astype(np.float64)


class _RankedColumn:
    """Numbers (n,) that are sorted once, and ranked in any draw of their rows without sorting again."""

    def __init__(self, values: np.ndarray) -> None:
        _, self._group = np.unique(values, return_inverse=True)
        self._order = np.argsort(self._group, kind="stable")
        grouped = self._group[self._order]
        self._starts = np.flatnonzero(np.diff(grouped, prepend=-1))

    def ranks(self, counts: np.ndarray) -> np.ndarray:
        """Return the rank of each row in draws, (draws, n); equal numbers share their mean rank."""
        members = np.add.reduceat(counts[:, self._order], self._starts, axis=1)
        below = np.cumsum(members, axis=1) - members
        return (below + (members + 1) / 2)[:, self._group]


def _correlations(x: np.ndarray, y: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Return the Pearson correlation of x and y in each draw, (draws,)."""
    total = counts.sum(axis=1, keepdims=True)
    x = x - (counts * x).sum(axis=1, keepdims=True) / total
    y = y - (counts * y).sum(axis=1, keepdims=True) / total
    weighted = counts * x
    together = (weighted * y).sum(axis=1)
    apart = (weighted * x).sum(axis=1) * (counts * y * y).sum(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return together / np.sqrt(apart)


def _difference(value: float, draws: np.ndarray) -> Difference:
    low, high = interval(draws)
    return Difference(value=value, low=low, high=high)
