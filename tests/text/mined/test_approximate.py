"""The index of an approximate search: its clusters, its blocks, and all clusters against exact search."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from opencse.foundation.numbers import unit_rows
from opencse.foundation.workers import Local
from opencse.text.mined import approximate
from opencse.text.mined.candidate_pools import CandidatePools, nearest, without_copies

ROWS = 1000
EVERYTHING = (-np.inf, np.inf)


class Sentences(SimpleNamespace):
    """Keys of sentences, without texts."""

    def __len__(self) -> int:
        return len(self.keys)


@dataclass
class Stub:
    """Vectors in memory, in shards of 100."""

    folder: Path
    matrix: np.ndarray
    keys: np.ndarray

    dimension = 16

    @property
    def sentences(self) -> Sentences:
        return Sentences(keys=self.keys)

    @property
    def shards(self) -> list[range]:
        return [range(start, start + 100) for start in range(0, len(self.keys), 100)]

    def take(self, ids: np.ndarray) -> np.ndarray:
        return self.matrix[ids].astype(np.float32)


@pytest.fixture
def stub(tmp_path, monkeypatch) -> Stub:
    monkeypatch.setattr(approximate, "_SHARDS_AT_ONCE", 3)
    matrix = unit_rows(np.random.default_rng(0).normal(size=(ROWS, 16))).astype(np.float16)
    keys = np.arange(ROWS, dtype=np.uint64)
    keys[700:720] = keys[:20]
    return Stub(tmp_path, matrix, keys)


def built(stub: Stub) -> approximate.Clusters:
    approximate._opened.cache_clear()
    approximate.build_index(stub, Local(processes=1))
    return approximate.open_index(stub)


def exact(stub: Stub, rows: np.ndarray, **options) -> tuple[CandidatePools, np.ndarray]:
    candidates = without_copies(np.arange(ROWS), stub.keys)
    return nearest(rows, candidates, stub.keys, stub.take, size=5, **options)


def test_all_clusters_give_the_exact_nearest(stub) -> None:
    index = built(stub)
    assert len(index.blocks) == 4
    assert index.count == 15
    rows = np.arange(0, ROWS, 7)
    found, _ = approximate.search(index, rows, stub, size=5, window=EVERYTHING, probes=index.count)
    expected, _ = exact(stub, rows, window=EVERYTHING)
    np.testing.assert_allclose(found.cosine, expected.cosine, atol=1e-6)
    np.testing.assert_array_equal(found.ids, expected.ids)
    assert not np.isin(found.ids, np.arange(700, 720)).any()


def test_windows_and_limits_are_those_of_the_exact_search(stub) -> None:
    index = built(stub)
    rows = np.arange(ROWS)
    limits = np.linspace(0.2, 0.7, ROWS, dtype=np.float32)
    options = {"window": (0.1, 0.6), "limits": limits}
    found, skipped = approximate.search(index, rows, stub, size=5, probes=index.count, **options)
    expected, expected_skipped = exact(stub, rows, **options)
    np.testing.assert_array_equal(found.ids, expected.ids)
    np.testing.assert_array_equal(skipped, expected_skipped)
    assert skipped.sum() > 1000


def test_fewer_clusters_find_less(stub) -> None:
    index = built(stub)
    rows = np.arange(ROWS)
    sums = []
    for probes in (1, 4, index.count):
        found, _ = approximate.search(index, rows, stub, size=5, window=EVERYTHING, probes=probes)
        sums.append(found.cosine.sum())
    assert sums == sorted(sums)
    assert sums[0] < 0.95 * sums[2]


def test_a_build_continues_with_the_missing_blocks(stub, monkeypatch) -> None:
    class Killed(BaseException):
        pass

    def build_two(task, block) -> int:
        if block == 2:
            raise Killed
        return whole(task, block)

    whole = approximate._BuildBlock.__call__
    with monkeypatch.context() as patch:
        patch.setattr(approximate._BuildBlock, "__call__", build_two)
        with pytest.raises(Killed):
            built(stub)
    folder = stub.folder / "clusters-2"
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("*.npy")}
    assert len(list(folder.glob("block-*"))) == 2

    monkeypatch.setattr(approximate, "k_means", None)
    assert len(built(stub).blocks) == 4
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_the_order_of_blocks_does_not_matter(stub, tmp_path) -> None:
    approximate.build_index(stub, Local(processes=1))
    other = Stub(tmp_path / "other", stub.matrix, stub.keys)
    other.folder.mkdir()
    approximate.build_index(other, InAnotherOrder())
    for path in (stub.folder / "clusters-2").rglob("*.npy"):
        same = other.folder / path.relative_to(stub.folder)
        assert same.read_bytes() == path.read_bytes()


class InAnotherOrder:
    """An engine that does the last job first, each with a task of its own."""

    remote = False

    def map(self, task, jobs):
        """Do all jobs, and yield them in order."""
        results = {}
        for job in reversed(list(jobs)):
            opened = copy.copy(task)
            opened.open()
            results[job] = opened(job)
        yield from sorted(results.items())


def test_k_means_separates_groups() -> None:
    """Three groups around three directions become three clusters, whatever the order."""
    random = np.random.default_rng(0)
    group = random.integers(0, 3, size=300)
    group[:3] = [0, 1, 2]
    vectors = unit_rows(np.eye(8)[group] + random.normal(scale=0.1, size=(300, 8)))
    centers = approximate.k_means(vectors, 3)
    np.testing.assert_array_equal(approximate.nearest_centers(vectors, centers), group)
    means = unit_rows(np.stack([vectors[group == g].sum(axis=0) for g in range(3)]))
    np.testing.assert_allclose(centers, means, atol=1e-6)


def test_a_cluster_without_vectors_keeps_its_center() -> None:
    vectors = unit_rows(np.array([[1, 0], [1, 0], [1, 0.1], [0, 1]]))
    centers = approximate.k_means(vectors, 2)
    assert np.isfinite(centers).all()
    np.testing.assert_allclose(np.linalg.norm(centers, axis=1), 1, atol=1e-6)
