"""Toy pairs for the tests of evaluation."""

from __future__ import annotations

import numpy as np

from tests.tiny import WORDS


def sentences(count: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(3, 15))) for _ in range(count)]
