"""Cosines of paired rows, and correlations that are None if undefined."""

from __future__ import annotations

import numpy as np

ROUNDING = 5e-7
"""Largest rounding difference between the cosines of equal float32 vectors."""


def paired_cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the cosines (n,) of paired rows of `a` and `b` (n, d); 0 if a row is zero (SimCSE's rule).

    Computed in float32 by sentence-transformers' own function. Rounding orders pairs of equal sentences, whose cosine
    is 1 up to 1e-7, arbitrarily. Ties would be cleaner, but would change STS12, which has 79 of them, by 0.0025 points
    from the value of sentence-transformers.
    """
    from sentence_transformers.util import pairwise_cos_sim

    single = (np.asarray(a, dtype=np.float32), np.asarray(b, dtype=np.float32))
    return pairwise_cos_sim(*single).numpy()


def pearson(x: np.ndarray, y: np.ndarray) -> float | None:
    """Return the Pearson correlation of two vectors (n,); None if undefined (n < 2, or one of them is constant)."""
    if why_undefined(x, y):
        return None
    x, y = (np.asarray(v, dtype=np.float64) for v in (x, y))
    x, y = x - x.mean(), y - y.mean()
    return float(np.clip(x @ y / (np.linalg.norm(x) * np.linalg.norm(y)), -1.0, 1.0))


def spearman(x: np.ndarray, y: np.ndarray) -> float | None:
    """Return the Spearman correlation (ties share their mean rank); None if undefined."""
    from scipy.stats import rankdata

    return None if why_undefined(x, y) else pearson(rankdata(x), rankdata(y))


def why_undefined(gold: np.ndarray, predicted: np.ndarray) -> str | None:
    """Return why a correlation is undefined, or None if it is defined."""
    if len(gold) < 2:
        return f"{len(gold)} pair"
    if np.ptp(gold) == 0:
        return "all gold scores are equal"
    # Otherwise the correlation of a collapsed model would be that of its rounding errors.
    if np.ptp(predicted) <= ROUNDING:
        return "the model gives all pairs the same score"
    return None
