"""OssCSE eq. 3, row by row."""

from __future__ import annotations

import numpy as np

from tests.reference.contrastive import cosine


def two_way_margin(
    anchors: np.ndarray,
    closer: np.ndarray,
    farther: np.ndarray,
    alpha: float,
    beta: float,
    rows: np.ndarray,
) -> float:
    """max(sim(h, h^n) - sim(h, h^p) + α, 0) + max(sim(h, h^p) - sim(h, h^n) - β, 0), mean over `rows`."""
    losses = []
    for i in np.flatnonzero(rows):
        near, far = cosine(anchors[i], closer[i]), cosine(anchors[i], farther[i])
        losses.append(max(far - near + alpha, 0) + max(near - far - beta, 0))
    return float(np.mean(losses)) if losses else 0.0
