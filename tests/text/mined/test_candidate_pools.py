from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chisquare

from opencse.text.mined import candidate_pools as pools
from opencse.text.mined.candidate_pools import in_window, nearest, random_block, without_copies

N, D = 500, 8


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch):
    monkeypatch.setattr(pools, "CHUNK", 37)


@pytest.fixture(scope="module")
def vectors() -> np.ndarray:
    matrix = np.random.default_rng(0).standard_normal((N, D)).astype(np.float32)
    matrix[7] = matrix[3]  # a copy
    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


@pytest.fixture(scope="module")
def keys() -> np.ndarray:
    keys = np.arange(N, dtype=np.uint64) + np.uint64(10)
    keys[7] = keys[3]
    return keys


def test_first_in_window_in_the_order_given(vectors, keys):
    order = without_copies(random_block(N, N, seed=1), keys)
    rows = np.array([3, 7, 400, 9])
    found = in_window(rows, order, keys, vectors.__getitem__, size=20, window=(0.2, 0.6))
    for k, row in enumerate(rows):
        cosine = vectors[order] @ vectors[row]
        expected = [i for i, c in zip(order, cosine, strict=True) if 0.2 <= c <= 0.6 and keys[i] != keys[row]][:20]
        assert found.ids[k, : found.sizes[k]].tolist() == expected
        np.testing.assert_allclose(found.cosine[k, : found.sizes[k]], vectors[expected] @ vectors[row], atol=1e-6)
        assert (found.ids[k, found.sizes[k] :] == -1).all()


def test_pools_are_unbiased(vectors, keys):
    row, size = np.array([0]), 10
    inside = np.flatnonzero((np.abs(vectors @ vectors[0] - 0.4) <= 0.2) & (np.arange(N) != 0))
    counts = np.zeros(N)
    for seed in range(1500):
        block = random_block(N, 200, seed)
        found = in_window(row, block, keys, vectors.__getitem__, size=size, window=(0.2, 0.6))
        counts[found.ids[0, : found.sizes[0]]] += 1
    assert counts.sum() == counts[inside].sum()
    assert chisquare(counts[inside]).pvalue > 0.001


@pytest.mark.parametrize("size", [1, 5, 60])
def test_nearest_is_the_sorted_answer(vectors, keys, size):
    candidates = without_copies(np.arange(N), keys)
    rows = np.arange(40)
    found, _ = nearest(rows, candidates, keys, vectors.__getitem__, size=size, window=(0.3, 0.7))
    for k, row in enumerate(rows):
        cosine = vectors[candidates] @ vectors[row]
        fits = (cosine >= 0.3) & (cosine <= 0.7) & (keys[candidates] != keys[row])
        expected = candidates[fits][np.argsort(-cosine[fits], kind="stable")][:size]
        assert found.ids[k, : found.sizes[k]].tolist() == expected.tolist()


def test_copies():
    keys = np.array([0, 0, 7, 0, 7, 1, 0, 0, 0, 1], dtype=np.uint64)
    assert without_copies(np.array([5, 2, 9, 4]), keys).tolist() == [5, 2]
    assert without_copies(np.array([], dtype=np.int64), keys).tolist() == []


def test_blocks():
    assert sorted(random_block(50, 1000, 3).tolist()) == list(range(50))
    block = random_block(10**9, 1000, 3)
    assert len(np.unique(block)) == 1000
    assert (block != random_block(10**9, 1000, 4)).any()
    assert random_block(1, 10, 0).tolist() == [0]


def test_window_ends_belong_to_it():
    vectors = np.array([[1, 0], [0.25, 0.5], [0.75, 0.5], [0.2499, 1]], dtype=np.float32)
    ids = np.arange(4)
    keys = ids.astype(np.uint64)
    found = in_window(ids[:1], ids, keys, vectors.__getitem__, size=4, window=(0.25, 0.75))
    assert found.ids.tolist() == [[1, 2, -1, -1]]
