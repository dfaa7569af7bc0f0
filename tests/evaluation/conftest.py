from __future__ import annotations

import os
import sys
from pathlib import Path

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

sys.path.insert(0, str(Path(__file__).parents[1]))
from opencse.evaluation import ScoredPairs
from tiny import WORDS, tiny_bert


@pytest.fixture(scope="session")
def tiny_model(tmp_path_factory) -> SentenceTransformer:
    return SentenceTransformer(str(tiny_bert(tmp_path_factory.mktemp("bert"))), device="cpu")


def sentences(count: int, seed: int = 0) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, rng.integers(3, 15))) for _ in range(count)]


@pytest.fixture
def some_pairs() -> ScoredPairs:
    a = sentences(60)
    b = sentences(60, seed=1)
    scores = np.random.default_rng(2).integers(0, 6, 60).tolist()
    return ScoredPairs(name="toy", sentence1=a, sentence2=b, scores=scores, subsets=["x"] * 20 + ["y"] * 40)


@pytest.fixture(scope="session")
def data_root() -> Path:
    """The folder with the real STS files, or a skip."""
    for candidate in (os.environ.get("OPENCSE_DATA"), Path(__file__).parents[3] / "shared" / "data"):
        if candidate and (Path(candidate) / "eval" / "STS12" / "test.tsv.gz").exists():
            return Path(candidate)
    pytest.skip("the STS files are not here: set OPENCSE_DATA to the data folder")
