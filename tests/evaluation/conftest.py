from __future__ import annotations

import numpy as np
import pytest

from opencse.evaluation import ScoredPairs
from tests.tiny import WORDS


def sentences(count: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(3, 15))) for _ in range(count)]


@pytest.fixture
def some_pairs() -> ScoredPairs:
    a = sentences(60)
    b = sentences(60, seed=1)
    scores = np.random.default_rng(2).integers(0, 6, 60).tolist()
    return ScoredPairs(
        name="toy", sentence1=a, sentence2=b, scores=scores, subsets=["x"] * 20 + ["y"] * 40
    )
