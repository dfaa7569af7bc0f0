"""A slow, literal NumPy transcription of the contrastive family: loops over the papers' sums."""

from __future__ import annotations

import math

import numpy as np


def cosine(u: np.ndarray, v: np.ndarray) -> float:
    return float(u @ v / math.sqrt(u @ u) / math.sqrt(v @ v))


def contrastive(
    anchors: np.ndarray,
    positives: np.ndarray,
    negatives: list[np.ndarray] = [],  # noqa: B006  (never changed)
    *,
    t: float = 0.05,
    t2: float | None = None,
    own_only: bool = False,
    own_weight: float = 1.0,
    signs: str = "",
    m: float | str = 0.0,
    by_candidate: bool = False,
    mix: bool = False,
    both_sides: bool = False,
    has_anchor: np.ndarray | None = None,
    has_positive: np.ndarray | None = None,
    has_negative: list[np.ndarray] | None = None,
) -> float:
    """-log e^{(c_ii + s_p m)/t} / sum, mean over i; see SimCSE eq. 1 and 5, HiNCE eq. 2, BYOP eq. 3."""
    n = len(anchors)
    has_anchor = np.ones(n, bool) if has_anchor is None else has_anchor
    has_positive = np.ones(n, bool) if has_positive is None else has_positive
    has_negative = [np.ones(n, bool) for _ in negatives] if has_negative is None else has_negative
    sp = {"p+": 1, "p-": -1}.get(
        next((signs[k : k + 2] for k in range(len(signs)) if signs[k] == "p"), ""), 0
    )
    sn = {"n+": 1, "n-": -1}.get(
        next((signs[k : k + 2] for k in range(len(signs)) if signs[k] == "n"), ""), 0
    )
    t2 = t if t2 is None else t2
    width = int(has_positive.sum())

    def margin(i: int) -> float:
        return cosine(anchors[i], positives[i]) / (width - 1) if m == "dynamic" else float(m)

    def mean_loss(p: int, q: int) -> float:
        losses = []
        for i in range(n):
            if not (has_anchor[i] and has_positive[i]):
                continue
            top = math.exp((cosine(anchors[i], positives[i]) + p * margin(i)) / t)
            below = 0.0
            for j in range(n):
                if has_positive[j]:
                    shift = p if i == j else q
                    whose = j if by_candidate else i
                    add = shift * margin(whose) if shift else 0.0
                    below += math.exp((cosine(anchors[i], positives[j]) + add) / t)
            for block, has in zip(negatives, has_negative):
                for j in range(n):
                    if has[j] and (i == j or not own_only):
                        weight = own_weight if i == j else 1.0
                        add = q * margin(i) if q else 0.0
                        below += weight * math.exp((cosine(anchors[i], block[j]) + add) / t2)
                        if both_sides:  # z1_z3_cos and z2_z3_cos of CoT-BERT's models.py
                            below += math.exp(cosine(positives[i], block[j]) / t2)
            losses.append(-math.log(top / below))
        return sum(losses) / len(losses) if losses else 0.0

    return (mean_loss(0, 0) + mean_loss(sp, sn)) / 2 if mix else mean_loss(sp, sn)
