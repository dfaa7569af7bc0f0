"""Literal transcription of RankEncoder's loss, one pair at a time, with SciPy's correlation."""

from __future__ import annotations

import numpy as np
from scipy.stats import spearmanr

from tests.reference.contrastive import cosine


def rank_similarity(
    anchors: np.ndarray,
    positives: np.ndarray,
    teacher: np.ndarray,
    corpus: np.ndarray,
    lower: float,
    upper: float,
) -> float:
    """The mean squared difference of cosines and rank correlations that are in a range."""
    neighbours = [[cosine(vector, other) for other in corpus] for vector in teacher]
    total, count = 0.0, 0
    for i, anchor in enumerate(anchors):
        for j, positive in enumerate(positives):
            correlation = float(spearmanr(neighbours[i], neighbours[j]).statistic)
            if lower <= correlation <= upper:
                total += (cosine(anchor, positive) - correlation) ** 2
                count += 1
    return total / (count + 1e-8)
