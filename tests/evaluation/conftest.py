from __future__ import annotations

import numpy as np
import pytest

from opencse.evaluation import ScoredPairs
from tests.evaluation.toy import sentences


@pytest.fixture
def some_pairs() -> ScoredPairs:
    a = sentences(60)
    b = sentences(60, seed=1)
    scores = np.random.default_rng(2).integers(0, 6, 60).tolist()
    return ScoredPairs(name="toy", sentence1=a, sentence2=b, scores=scores, subsets=["x"] * 20 + ["y"] * 40)
