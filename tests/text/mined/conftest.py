"""A small corpus and a tiny encoder whose vectors differ clearly."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest
from rapidfuzz.distance import Levenshtein

from opencse.foundation.workers import Local
from opencse.text.mined.vectors import MinedView, open_vectors
from opencse.text.views.registry import open_sentence_store, texts_hash
from tests.tiny import WORDS, saved_encoder


def made_up(count: int, seed: int = 0) -> list[str]:
    rng = random.Random(seed)
    lines = [" ".join(rng.choices(WORDS, k=rng.randint(3, 12))) for _ in range(count)]
    lines[10] = lines[3].upper() + "  "  # a copy
    return lines


def vectors(model: str, lines: list[str]) -> np.ndarray:
    """What the miner itself reads."""
    sentences = open_sentence_store(iter(lines), texts_hash(lines)[0])
    spec = MinedView(model=model, precision="fp32")
    store = open_vectors(sentences, spec, spec.embedder(), Local(processes=1))
    return store.take(np.arange(len(lines)))


def key(text: str) -> str:
    return " ".join(text.lower().split())


def word_similarity(text: str, pool: list[str]) -> np.ndarray:
    """Return 1 minus the edit distance over words, divided by the longer length (DebCSE, Eq. 1)."""
    return np.array(
        [
            Levenshtein.normalized_similarity(text.lower().split(), each.lower().split())
            for each in pool
        ]
    )


@pytest.fixture(scope="session")
def lines() -> list[str]:
    return made_up(700)


@pytest.fixture(scope="session")
def corpus(lines, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("corpus") / "corpus.txt"
    path.write_text("\n".join([*lines[:5], "", "  ", *lines[5:]]) + "\n")
    return path


@pytest.fixture(scope="session")
def encoder(tmp_path_factory) -> str:
    return str(saved_encoder(tmp_path_factory.mktemp("encoder")))
