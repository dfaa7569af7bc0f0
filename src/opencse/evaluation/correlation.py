"""Cosines of paired rows, and correlations that know when they are undefined."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata


def paired_cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cosine of each row of `a` (n, d) with that row of `b`, float64 (n,); 0 where a row is zero (SimCSE's rule).

    Rounded to 12 decimals, far below what float32 vectors tell apart, so that all pairs of equal sentences tie at 1 and
    no rounding error puts them in an order.
    """
    a, b = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    norms = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    return np.divide(np.einsum("nd,nd->n", a, b), norms, out=np.zeros(len(a)), where=norms > 0).round(12)


def pearson(x: np.ndarray, y: np.ndarray) -> float | None:
    """Pearson correlation of two vectors (n,); `None` where undefined (n < 2, or one of them is constant)."""
    if why_undefined(x, y):
        return None
    x, y = x - x.mean(), y - y.mean()
    return float(np.clip(x @ y / (np.linalg.norm(x) * np.linalg.norm(y)), -1.0, 1.0))


def spearman(x: np.ndarray, y: np.ndarray) -> float | None:
    """Spearman correlation (ties share their mean rank); `None` where undefined."""
    return None if why_undefined(x, y) else pearson(rankdata(x), rankdata(y))


def why_undefined(gold: np.ndarray, predicted: np.ndarray) -> str | None:
    """Why a correlation does not exist, or `None` where it does."""
    if len(gold) < 2:
        return f"{len(gold)} pair"
    # A spread of rounding errors is no spread: without this a collapsed model would score its own noise.
    if np.ptp(gold) == 0:
        return "all gold scores are equal"
    if np.ptp(predicted) <= 1e-12 * max(1.0, float(np.abs(predicted).max())):
        return "the model scores all pairs alike"
    return None
