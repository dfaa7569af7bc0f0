"""Estimates with their confidence intervals (bootstrap, Wilson), and partial rank correlation."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest, rankdata

from opencse.evaluation.correlation import pearson, why_undefined


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A value with its confidence interval, or the reason why the value is undefined.

    Attributes:
        value: The estimate; None if it is undefined.
        low: Lower end of the 95 % interval; None if none was computed.
        high: Upper end of the interval.
        rows: Number of observations.
        undefined: Why there is no value; empty if there is one.
    """

    value: float | None
    rows: int
    low: float | None = None
    high: float | None = None
    undefined: str = ""


def mean_estimate(values: np.ndarray, *, resamples: int = 2000, seed: int = 0, empty: str = "no row") -> Estimate:
    """Return the mean of n values with its 95 % percentile bootstrap interval.

    A rate is the mean of zeros and ones. With the same seed, two calls on vectors of one length resample the same rows.

    Args:
        values: Shape (n,).
        resamples: Bootstrap samples.
        seed: Seed of the resampling.
        empty: The reason given if n is 0.
    """
    values = np.asarray(values, dtype=np.float64)
    if not len(values):
        return Estimate(value=None, rows=0, undefined=empty)
    rng = np.random.default_rng(seed)
    means = np.array([values[rng.integers(0, len(values), len(values))].mean() for _ in range(resamples)])
    low, high = np.percentile(means, [2.5, 97.5])
    return Estimate(value=float(values.mean()), rows=len(values), low=float(low), high=float(high))


def rate_estimate(hits: int, rows: int, *, empty: str = "no row") -> Estimate:
    """Return a proportion with its 95 % Wilson score interval.

    Args:
        hits: Number of successes.
        rows: Number of independent trials.
        empty: The reason given if there is none.
    """
    if not rows:
        return Estimate(value=None, rows=0, undefined=empty)
    interval = binomtest(hits, rows).proportion_ci(method="wilson")
    return Estimate(value=hits / rows, rows=rows, low=float(interval.low), high=float(interval.high))


def partial_spearman(x: np.ndarray, y: np.ndarray, given: np.ndarray) -> Estimate:
    """Return the partial Spearman correlation of x and y, controlling for `given`.

    On ranks, r_xy.z = (r_xy - r_xz r_yz) / sqrt((1 - r_xz^2)(1 - r_yz^2)). All arguments have shape (n,).
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
        return Estimate(value=None, rows=rows, undefined="the gold scores determine one of the two completely")
    return Estimate(value=float(np.clip((xy - xz * yz) / np.sqrt(rest), -1, 1)), rows=rows)


def weighted(estimates: list[Estimate]) -> Estimate:
    """Return the mean of estimates, weighted by their rows; undefined if any of them is."""
    missing = [estimate for estimate in estimates if estimate.value is None]
    rows = sum(each.rows for each in estimates)
    if missing or not rows:
        reason = f"undefined in {len(missing)} of {len(estimates)} sets" if estimates else "no set"
        return Estimate(value=None, rows=rows, undefined=reason)
    return Estimate(value=sum(each.rows * float(each.value or 0) for each in estimates) / rows, rows=rows)
