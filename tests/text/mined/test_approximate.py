"""The index of an approximate search: several blocks, copies, and all clusters against exact search."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from opencse.foundation.numbers import unit_rows
from opencse.text.mined import approximate
from opencse.text.mined.candidate_pools import nearest, without_copies

ROWS = 1000
EVERYTHING = (-np.inf, np.inf)


@dataclass
class Stub:
    """Vectors in memory, in shards of 100."""

    folder: Path
    matrix: np.ndarray
    keys: np.ndarray

    dimension = 16

    @property
    def sentences(self) -> SimpleNamespace:
        return SimpleNamespace(keys=self.keys)

    @property
    def shards(self) -> list[range]:
        return [range(start, start + 100) for start in range(0, len(self.keys), 100)]

    def take(self, ids: np.ndarray) -> np.ndarray:
        return self.matrix[ids].astype(np.float32)


@pytest.fixture
def stub(tmp_path, monkeypatch) -> Stub:
    pytest.importorskip("faiss")
    monkeypatch.setattr(approximate, "_SHARDS_AT_ONCE", 3)
    matrix = unit_rows(np.random.default_rng(0).normal(size=(ROWS, 16))).astype(np.float16)
    keys = np.arange(ROWS, dtype=np.uint64)
    keys[700:720] = keys[:20]
    return Stub(tmp_path, matrix, keys)


def test_all_clusters_of_all_blocks_give_the_exact_nearest(stub) -> None:
    index = approximate.open_index(stub)
    assert len(index.blocks) == 4
    assert index.count == 15
    rows = np.arange(0, ROWS, 7)
    found, _ = approximate.search(index, rows, stub, size=5, window=EVERYTHING, probes=index.count)
    candidates = without_copies(np.arange(ROWS), stub.keys)
    exact, _ = nearest(rows, candidates, stub.keys, stub.take, size=5, window=EVERYTHING)
    np.testing.assert_allclose(found.cosine, exact.cosine, atol=1e-3)
    assert (found.ids == exact.ids).mean() > 0.98
    assert not np.isin(found.ids, np.arange(700, 720)).any()


def test_fewer_clusters_find_less(stub) -> None:
    index = approximate.open_index(stub)
    rows = np.arange(ROWS)
    sums = []
    for probes in (1, 4, index.count):
        found, _ = approximate.search(index, rows, stub, size=5, window=EVERYTHING, probes=probes)
        sums.append(found.cosine.sum())
    assert sums == sorted(sums)
    assert sums[0] < 0.95 * sums[2]


def test_an_index_is_read_again(stub, monkeypatch) -> None:
    first = approximate.open_index(stub)
    approximate._opened.cache_clear()
    monkeypatch.setattr(approximate, "_build", None)
    again = approximate.open_index(stub)
    queries = stub.take(np.arange(10))
    for one, other in zip(first.search(queries, 4, 8), again.search(queries, 4, 8), strict=True):
        np.testing.assert_array_equal(one, other)
