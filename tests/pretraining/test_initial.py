"""Counting, beside literal loops."""

from __future__ import annotations

import numpy as np
import pytest

from opencse.pretraining.initial import cooccurrences, factorise, piece_counts
from opencse.pretraining.store import SentenceIds

TEXTS = [[1, 2, 3, 1, 4, 5], [2], [3, 3], [4, 1, 2, 6, 6, 1, 2, 3]] * 3


class Store(SentenceIds):
    def __init__(self, texts: list[list[int]]) -> None:
        self._texts = [np.array(t, dtype=np.uint16) for t in texts]

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, index):
        return self._texts[index]


def literal_pairs(size: int) -> np.ndarray:
    pairs = np.zeros((size, size))
    for text in TEXTS:
        for i, a in enumerate(text):
            for j, b in enumerate(text):
                if 0 < abs(i - j) <= 4:
                    pairs[a, b] += 1 / abs(i - j)
    return pairs


def test_pairs_and_counts() -> None:
    found = cooccurrences(Store(TEXTS), 8)
    assert found.toarray() == pytest.approx(literal_pairs(8))
    assert piece_counts(Store(TEXTS), 8).tolist() == [sum(t.count(i) for t in TEXTS) for i in range(8)]


def test_inner_products_are_the_information() -> None:
    from scipy import sparse

    pairs = literal_pairs(8)
    contexts = pairs.sum(1) ** 0.75
    contexts /= contexts.sum()
    information = np.zeros_like(pairs)
    for a in range(8):
        for b in range(8):
            if pairs[a, b] >= 1:
                information[a, b] = max(0.0, np.log(pairs[a, b] / (pairs[a].sum() * contexts[b])))
    vectors = factorise(sparse.csr_matrix(pairs), 8, seed=0)
    u, s, _ = np.linalg.svd(information)
    expected = u * np.sqrt(s)
    # The sign of a singular vector is free.
    assert vectors @ vectors.T == pytest.approx(expected @ expected.T, abs=1e-4)
