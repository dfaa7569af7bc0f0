"""A literal NumPy transcription of OssCSE eq. 4: +γ/2 Σ_k (θ_k − θ*_k)², over every single weight."""

from __future__ import annotations

import numpy as np


def recall(weights: dict[str, np.ndarray], initial: dict[str, np.ndarray], gamma: float) -> float:
    total = 0.0
    for name, weight in weights.items():
        for k in np.ndindex(weight.shape):
            total += (float(weight[k]) - float(initial[name][k])) ** 2
    return gamma / 2 * total
