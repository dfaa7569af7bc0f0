"""A number with how sure one may be of it: bootstrap intervals, and partial correlation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest, rankdata

from opencse.evaluation.correlation import pearson, why_undefined


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A value, or the reason why there is none.

    Attributes:
        value: The estimate; None is *undefined*, for the reason in `undefined`.
        low: Lower end of the 95 % bootstrap interval, where one was computed.
        high: Its upper end.
        rows: What it was computed from.
        undefined: Why there is no value; empty where there is one.
    """

    value: float | None
    rows: int
    low: float | None = None
    high: float | None = None
    undefined: str = ""


def mean_estimate(values: np.ndarray, *, resamples: int = 2000, seed: int = 0, empty: str = "no row") -> Estimate:
    """Mean of n values with a 95 % percentile bootstrap interval over them.

    A rate is the mean of zeros and ones. With the same seed, two calls on vectors of one length resample the same rows.

    Args:
        values: (n,).
        resamples: Bootstrap samples.
        seed: Of the samples.
        empty: What to say where n is 0.
    """
    values = np.asarray(values, dtype=np.float64)
    if not len(values):
        return Estimate(value=None, rows=0, undefined=empty)
    chance = np.random.default_rng(seed)
    means = np.array([values[chance.integers(0, len(values), len(values))].mean() for _ in range(resamples)])
    low, high = np.percentile(means, [2.5, 97.5])
    return Estimate(value=float(values.mean()), rows=len(values), low=float(low), high=float(high))


def rate_estimate(hits: int, rows: int, *, empty: str = "no row") -> Estimate:
    """Return a share with its 95 % Wilson interval.

    Args:
        hits: Rows that count.
        rows: All rows, independent of each other.
        empty: What to say where there is none.
    """
    if not rows:
        return Estimate(value=None, rows=0, undefined=empty)
    spread = binomtest(hits, rows).proportion_ci(method="wilson")
    return Estimate(value=hits / rows, rows=rows, low=float(spread.low), high=float(spread.high))


def partial_spearman(x: np.ndarray, y: np.ndarray, given: np.ndarray) -> Estimate:
    """Rank correlation of x and y that is left when both are cleared of what the ranks of `given` explain linearly.

    r_xy.z = (r_xy - r_xz r_yz) / sqrt((1 - r_xz^2)(1 - r_yz^2)) on ranks.
    """
    rows = len(x)
    if rows < 3:
        return Estimate(value=None, rows=rows, undefined="fewer than 3 pairs")
    ranks = [rankdata(values) for values in (x, y, given)]
    for name, values in zip(("similarities", "surface differences", "gold scores"), (x, y, given), strict=True):
        if why_undefined(values, np.arange(rows)):
            return Estimate(value=None, rows=rows, undefined=f"all {name} are equal")
    xy, xz, yz = (pearson(ranks[a], ranks[b]) or 0.0 for a, b in ((0, 1), (0, 2), (1, 2)))
    rest = (1 - xz**2) * (1 - yz**2)
    if rest <= 1e-12:
        return Estimate(value=None, rows=rows, undefined="the gold scores explain one of the two wholly")
    return Estimate(value=float(np.clip((xy - xz * yz) / np.sqrt(rest), -1, 1)), rows=rows)


def weighted(estimates: list[Estimate]) -> Estimate:
    """Mean of estimates weighted by their rows; undefined, and naming how many, as soon as one of them is."""
    missing = [each for each in estimates if each.value is None]
    rows = sum(each.rows for each in estimates)
    if missing or not rows:
        reason = f"undefined in {len(missing)} of {len(estimates)} sets" if estimates else "no set"
        return Estimate(value=None, rows=rows, undefined=reason)
    return Estimate(value=sum(each.rows * float(each.value or 0) for each in estimates) / rows, rows=rows)
