"""DCLR's weighted denominator and its noise, and ArcCSE's angle, as sums over rows."""

from __future__ import annotations

import math

import numpy as np

from tests.reference.contrastive import cosine


def debiased(
    anchors: np.ndarray,
    positives: np.ndarray,
    *,
    t: float = 0.05,
    degrees: float = 0.0,
    teacher: tuple[np.ndarray, np.ndarray] | None = None,
    threshold: float = 0.9,
    weight: float = 0.0,
    center: bool = False,
    noise: np.ndarray | None = None,
    has_positive: np.ndarray | None = None,
) -> float:
    """-log e^{cos(θ_ii + m)/t} / (itself + Σ_{j≠i} α_ij e^{c_ij/t} + Σ_k e^{c(a_i, v_k)/t}); DCLR eq. 9."""
    n = len(anchors)
    there = np.ones(n, bool) if has_positive is None else has_positive
    if teacher is not None and center:
        teacher = (teacher[0] - teacher[0].mean(axis=0), teacher[1] - teacher[0].mean(axis=0))
    losses = []
    for i in np.flatnonzero(there):
        angle = math.acos(cosine(anchors[i], positives[i])) + math.radians(degrees)
        top = math.exp(math.cos(angle) / t)
        below = top
        for j in np.flatnonzero(there):
            if j != i:
                false = teacher is not None and cosine(teacher[0][i], teacher[1][j]) >= threshold
                below += (weight if false else 1.0) * math.exp(cosine(anchors[i], positives[j]) / t)
        for v in noise if noise is not None else []:
            below += math.exp(cosine(anchors[i], v) / t)
        losses.append(-math.log(top / below))
    return float(np.mean(losses))


def crowding(noise: np.ndarray, anchors: np.ndarray, t: float) -> float:
    """What the noise ascends: Σ_i log Σ_k e^{c(a_i, v_k)/t}."""
    return sum(math.log(sum(math.exp(cosine(a, v) / t) for v in noise)) for a in anchors)
