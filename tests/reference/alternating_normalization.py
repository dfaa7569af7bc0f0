"""DebCSE eq. 7-9, as sums over rows."""

from __future__ import annotations

import math

import numpy as np

from tests.reference.contrastive import cosine


def batch_norm(vectors: np.ndarray, here: np.ndarray) -> np.ndarray:
    """Each feature minus its mean, over its standard deviation (biased, as in training), over the rows `here`."""
    out = np.zeros_like(vectors)
    if here.any():
        mean, variance = vectors[here].mean(axis=0), vectors[here].var(axis=0)
        out[here] = (vectors[here] - mean) / np.sqrt(variance + 1e-5)
    return out


def alternating_normalization(
    anchors: np.ndarray,
    positives: list[np.ndarray],
    negatives: list[np.ndarray],
    *,
    t: float = 0.05,
    decoupled: bool = False,
    all_negatives: bool = False,
    normalize: bool = True,
    has_anchor: np.ndarray,
    has_positive: list[np.ndarray],
    has_negative: list[np.ndarray],
) -> float:
    z = batch_norm(anchors, has_anchor) if normalize else anchors
    z_pos = [batch_norm(p, m) if normalize else p for p, m in zip(positives, has_positive)]
    z_neg = [batch_norm(n, m) if normalize else n for n, m in zip(negatives, has_negative)]
    n = len(anchors)

    def direction(i, a, b, z_others, has_others) -> float:
        below = 0.0
        for mined, there in zip(z_neg, has_negative):
            for j in range(n):
                if there[j] and (all_negatives or j == i):
                    below += math.exp(cosine(a[i], mined[j]) / t)
        for j in range(n):
            if has_others[j] and j != i:
                below += math.exp(cosine(a[i], z_others[j]) / t)
        top = math.exp(cosine(a[i], b[i]) / t)
        return -math.log(top / (below if decoupled else below + top))

    losses = []
    for h_pos, zp, there in zip(positives, z_pos, has_positive):
        for i in range(n):
            if has_anchor[i] and there[i]:
                forth = direction(i, z, h_pos, zp, there)
                back = direction(i, zp, anchors, z, has_anchor)
                losses.append(forth + back)
    return float(np.mean(losses)) if losses else 0.0
