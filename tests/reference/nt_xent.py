"""A slow, literal NumPy transcription of NT-Xent (SimCLR eq. 1, DeCLUTR eq. 2)."""

from __future__ import annotations

import math

import numpy as np

from tests.reference.contrastive import cosine


def nt_xent(
    pairs: list[tuple[np.ndarray, list[np.ndarray]]], *, t: float, has: list[np.ndarray]
) -> float:
    """The mean over all 2N points; `has` says for each pair which rows have all of its views."""
    anchors = []
    partners = []
    for (anchor, positives), there in zip(pairs, has, strict=True):
        for i in range(len(anchor)):
            if there[i]:
                anchors.append(anchor[i])
                partners.append(sum(p[i] for p in positives) / len(positives))
    points = anchors + partners
    count = len(anchors)
    losses = []
    for i in range(2 * count):
        partner = (i + count) % (2 * count)
        top = math.exp(cosine(points[i], points[partner]) / t)
        below = sum(math.exp(cosine(points[i], points[k]) / t) for k in range(2 * count) if k != i)
        losses.append(-math.log(top / below))
    return sum(losses) / len(losses) if losses else 0.0
