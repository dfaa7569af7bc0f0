"""DiffCSE literally: the loss over tokens one by one, and the edits on plain lists."""

from __future__ import annotations

import math

import numpy as np


def detection_loss(logits: np.ndarray, changed: np.ndarray, counted: np.ndarray) -> float:
    """Mean over the counted tokens of −1(x''=x) log D − 1(x''≠x) log(1 − D), D the probability of "original" (§3)."""
    total = count = 0.0
    for i in range(changed.shape[0]):
        for t in range(changed.shape[1]):
            if counted[i, t]:
                original, other = math.exp(logits[i, t, 0]), math.exp(logits[i, t, 1])
                d = original / (original + other)
                total += -math.log(1 - d) if changed[i, t] else -math.log(d)
                count += 1
    return total / count


def inserted(tokens: list[int], before: list[bool], token: int) -> tuple[list[int], list[bool]]:
    """The tokens with `token` before each that is named; which of them are new."""
    out, new = [], []
    for t, name in zip(tokens, before):
        if name:
            out.append(token)
            new.append(True)
        out.append(t)
        new.append(False)
    return out, new


def deleted(tokens: list[int], chosen: list[bool]) -> tuple[list[int], list[bool]]:
    """The tokens without the chosen ones; which of them follow a deleted one."""
    out, follows, gap = [], [], False
    for t, drop in zip(tokens, chosen):
        if not drop:
            out.append(t)
            follows.append(gap)
        gap = drop
    return out, follows
