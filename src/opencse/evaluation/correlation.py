"""Cosines of paired rows, and correlations that know when they are undefined."""

from __future__ import annotations

import numpy as np
from scipy.stats import rankdata
from sentence_transformers.util import pairwise_cos_sim

ROUNDING = 5e-7
"""How far apart rounding alone sets the cosines of equal float32 vectors."""


def paired_cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Cosine of each row of `a` (n, d) with that row of `b`, (n,); 0 where a row is zero (SimCSE's rule).

    In float32 and by sentence-transformers' own function. Rounding puts pairs of equal sentences, whose cosine is 1 up
    to 1e-7, in an arbitrary order. Tying them would be cleaner, and would set STS12, which has 79 of them, 0.0025
    points apart from what sentence-transformers computes.
    """
    single = (np.asarray(a, dtype=np.float32), np.asarray(b, dtype=np.float32))
    return pairwise_cos_sim(*single).numpy()


def mteb_cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The same by `mteb`'s formula: 1 minus half the squared distance of the unit vectors, in float32, by scikit-learn.

    Another rounding: it sets near ties in another order, which moves a Spearman correlation by up to 2e-5.
    """
    from sklearn.metrics.pairwise import paired_cosine_distances

    return 1 - paired_cosine_distances(np.asarray(a, dtype=np.float32), np.asarray(b, dtype=np.float32))


def pearson(x: np.ndarray, y: np.ndarray) -> float | None:
    """Pearson correlation of two vectors (n,); `None` where undefined (n < 2, or one of them is constant)."""
    if why_undefined(x, y):
        return None
    x, y = (np.asarray(v, dtype=np.float64) for v in (x, y))
    x, y = x - x.mean(), y - y.mean()
    return float(np.clip(x @ y / (np.linalg.norm(x) * np.linalg.norm(y)), -1.0, 1.0))


def spearman(x: np.ndarray, y: np.ndarray) -> float | None:
    """Spearman correlation (ties share their mean rank); `None` where undefined."""
    return None if why_undefined(x, y) else pearson(rankdata(x), rankdata(y))


def why_undefined(gold: np.ndarray, predicted: np.ndarray) -> str | None:
    """Why a correlation does not exist, or `None` where it does."""
    if len(gold) < 2:
        return f"{len(gold)} pair"
    if np.ptp(gold) == 0:
        return "all gold scores are equal"
    # A spread of rounding errors is no spread: without this a collapsed model would score its own noise.
    if np.ptp(predicted) <= ROUNDING:
        return "the model scores all pairs alike"
    return None
