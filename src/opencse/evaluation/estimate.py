"""Values that are measured on few rows, each with its confidence interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

from opencse.foundation.result_table import Number

_RESAMPLES = 2000


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

    def interval(self, digits: int = 3, *, scale: float = 1) -> str:
        """Return the interval as `0.71 to 0.80`, the reason why there is no value, or nothing."""
        if self.value is None:
            return self.undefined
        if self.low is None or self.high is None:
            return ""
        return f"{Number(scale * self.low, digits)} to {Number(scale * self.high, digits)}"

    def number(self, digits: int = 3) -> Number:
        """Return the value with its interval."""
        return Number(self.value, digits, aside=self.interval(digits))

    def percent(self) -> Number:
        """Return a rate in percent, with its interval."""
        value = None if self.value is None else 100 * self.value
        return Number(value, 0, " %", self.interval(0, scale=100))


def mean_estimate(values: np.ndarray | Sequence[float], *, empty: str = "no row") -> Estimate:
    """Return the mean of n values with its 95 % percentile bootstrap interval.

    A rate is the mean of zeros and ones. Two calls on vectors of one length resample the same rows.

    Args:
        values: Shape (n,).
        empty: The reason given if n is 0.
    """
    values = np.asarray(values, dtype=np.float64)
    if not len(values):
        return Estimate(value=None, rows=0, undefined=empty)
    rng = np.random.default_rng(0)
    means = []
    for _ in range(_RESAMPLES):
        resampled = rng.integers(0, len(values), len(values))
        means.append(values[resampled].mean())
    low, high = np.percentile(means, [2.5, 97.5])
    return Estimate(value=float(values.mean()), rows=len(values), low=float(low), high=float(high))


def rate_estimate(hits: int, rows: int) -> Estimate:
    """Return the share of successes in independent trials, with its 95 % Wilson score interval."""
    if not rows:
        return Estimate(value=None, rows=0, undefined="no row")
    interval = binomtest(hits, rows).proportion_ci(method="wilson")
    return Estimate(
        value=hits / rows, rows=rows, low=float(interval.low), high=float(interval.high)
    )


def weighted(estimates: list[Estimate]) -> Estimate:
    """Return the mean of estimates, weighted by their rows; undefined if any of them is."""
    missing = [estimate for estimate in estimates if estimate.value is None]
    rows = sum(estimate.rows for estimate in estimates)
    if missing or not rows:
        reason = f"undefined in {len(missing)} of {len(estimates)} sets" if estimates else "no set"
        return Estimate(value=None, rows=rows, undefined=reason)
    total = sum(estimate.rows * float(estimate.value or 0) for estimate in estimates)
    return Estimate(value=total / rows, rows=rows)
