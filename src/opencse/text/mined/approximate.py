"""Approximate search of a complete corpus for the nearest sentences: an inverted file (IVF).

k-means divides the vectors into clusters, and a search scores only the sentences of the clusters
whose centers are nearest. All rows of a search that look into a cluster are scored by one matrix
product, so it costs little more than reading the cluster once.

The index is on disk next to the vectors, in blocks of 262,144 sentences, and memory-mapped. Several
workers, of one machine or several, build blocks at the same time. A block is written completely or
not at all, so a build that was killed continues with the missing ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from opencse.foundation.files import locked, replaced
from opencse.foundation.numbers import unit_rows
from opencse.foundation.progress import Phase
from opencse.foundation.workers import Local
from opencse.text.mined.candidate_pools import CHUNK, TILE, CandidatePools, Scored, nearest_of

if TYPE_CHECKING:
    from opencse.foundation.workers import Engine
    from opencse.text.views.registry import SentenceStore

# Clusters whose sentences are scored for each row; benchmarks/mining/recall.py has the recall.
PROBES = 128
# Clusters of a corpus, at most: k-means takes time in proportion to their square.
_MOST_CLUSTERS = 8192
# Sentences for each cluster that k-means learns from, and its steps.
_SAMPLE = 64
_STEPS = 10
# Shards in a block of the index.
_SHARDS_AT_ONCE = 32
_VERSION = 2


class StoredVectors(Protocol):
    """What the index needs of `opencse.text.mined.vectors.Vectors`; pickled as a path."""

    @property
    def folder(self) -> Path:
        """Folder of the files; the index is put into it."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    @property
    def sentences(self) -> SentenceStore:
        """The corpus."""

    @property
    def shards(self) -> list[range]:
        """The numbers of the rows of each shard."""

    def take(self, ids: np.ndarray) -> np.ndarray:
        """Return the vectors with the given numbers, float32 (n, d)."""


@dataclass(frozen=True)
class Block:
    """Some of the sentences of a corpus, sorted by cluster; its arrays are memory-mapped.

    Attributes:
        folder: Place of the files.
    """

    folder: Path

    @cached_property
    def starts(self) -> np.ndarray:
        """Place of the first sentence of each cluster, and the number of sentences, int64 (k + 1,)."""
        return np.load(self.folder / "starts.npy")

    @cached_property
    def numbers(self) -> np.ndarray:
        """Numbers of the sentences, int64 (n,)."""
        return np.load(self.folder / "numbers.npy", mmap_mode="r")

    @cached_property
    def vectors(self) -> np.ndarray:
        """Unit vectors of the sentences, float16 (n, d)."""
        return np.load(self.folder / "vectors.npy", mmap_mode="r")


@dataclass(frozen=True)
class Clusters:
    """The sentences of a corpus by cluster.

    Attributes:
        centers: Unit vectors of the centers, float32 (k, d).
        blocks: The sentences.
    """

    centers: np.ndarray
    blocks: tuple[Block, ...]

    @property
    def count(self) -> int:
        """Number of clusters, k."""
        return len(self.centers)

    def scored(self, anchors: np.ndarray, probes: int) -> Iterator[Scored]:
        """Yield the sentences of the nearest clusters of each row with their cosines.

        Args:
            anchors: Unit vectors of the rows, float32 (a, d).
            probes: Number of clusters whose sentences are scored for a row.
        """
        probes = min(probes, self.count)
        chosen = np.empty((len(anchors), probes), dtype=np.int64)
        for first in range(0, len(anchors), TILE):
            cosine = anchors[first : first + TILE] @ self.centers.T
            chosen[first : first + TILE] = np.argpartition(-cosine, probes - 1)[:, :probes]

        # The rows of each cluster, one cluster after another.
        order = np.argsort(chosen, axis=None, kind="stable")
        rows = order // probes
        starts = np.searchsorted(chosen.ravel()[order], np.arange(self.count + 1))
        for cluster in range(self.count):
            of_cluster = rows[starts[cluster] : starts[cluster + 1]]
            if not len(of_cluster):
                continue
            for numbers, vectors in self._members(cluster):
                for first in range(0, len(of_cluster), TILE):
                    tile = of_cluster[first : first + TILE]
                    yield tile, numbers, anchors[tile] @ vectors.T

    def _members(self, cluster: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield numbers and vectors, float32, of the sentences of a cluster, so many at a time."""
        numbers = []
        vectors = []
        for block in self.blocks:
            start, end = block.starts[cluster : cluster + 2]
            for first in range(start, end, CHUNK):
                places = slice(first, min(first + CHUNK, end))
                numbers.append(block.numbers[places])
                vectors.append(block.vectors[places])
            if sum(map(len, numbers)) >= CHUNK:
                yield np.concatenate(numbers), np.concatenate(vectors, dtype=np.float32)
                numbers.clear()
                vectors.clear()
        if numbers:
            yield np.concatenate(numbers), np.concatenate(vectors, dtype=np.float32)


def open_index(vectors: StoredVectors) -> Clusters:
    """Return the index of a corpus that `build_index` has built."""
    return _opened(_BuildBlock(vectors).folder)


@lru_cache(maxsize=4)
def _opened(folder: Path) -> Clusters:
    blocks = [Block(path) for path in sorted(folder.glob("block-*"))]
    return Clusters(np.load(folder / "centers.npy"), tuple(blocks))


def build_index(vectors: StoredVectors, engine: Engine) -> None:
    """Build the index of a corpus, or what is missing of it.

    Later copies of a sentence, up to case and white space, are not in it.

    Args:
        vectors: The vectors of the corpus, all of them on disk.
        engine: Runs the building of blocks.

    Raises:
        OpencseError: Another process builds this index.
    """
    task = _BuildBlock(vectors)
    missing = task.missing()
    if not missing:
        return
    with locked(task.folder):
        if not (task.folder / "centers.npy").is_file():
            _write_clusters(vectors, task.folder)
        if len(missing) == 1:
            engine = Local(processes=1)
        rows = len(vectors.sentences)
        left = sum(len(task.rows(block)) for block in missing)
        with Phase("indexing", total=rows, unit="sentences", initial=rows - left) as phase:
            for _, indexed in engine.map(task, missing):
                phase.update(indexed)


def _write_clusters(vectors: StoredVectors, folder: Path) -> None:
    """Write the centers of the clusters, and which sentences are the first of their copies."""
    keys = vectors.sentences.keys
    _, firsts = np.unique(keys, return_index=True)
    is_first = np.zeros(len(keys), dtype=bool)
    is_first[firsts] = True
    _save(folder / "is_first.npy", is_first)

    count = round(2 * math.sqrt(len(firsts)))
    count = max(1, min(count, _MOST_CLUSTERS, len(firsts) // _SAMPLE))
    size = min(len(firsts), count * _SAMPLE)
    chosen = np.random.default_rng(0).choice(firsts, size=size, replace=False)
    # The centers are the last file, so that a build which finds them finds both.
    _save(folder / "centers.npy", k_means(vectors.take(chosen), count))


def _save(path: Path, array: np.ndarray) -> None:
    with replaced(path) as temporary, temporary.open("wb") as file:
        np.save(file, array)


def k_means(vectors: np.ndarray, count: int) -> np.ndarray:
    """Return the centers of spherical k-means, unit vectors, float32 (k, d) (Dhillon & Modha, 2001).

    It starts from the first `count` vectors. A cluster that loses all of its vectors keeps its center.

    Args:
        vectors: Unit vectors in random order, float32 (n, d).
        count: k, the number of clusters.
    """
    from scipy.sparse import csr_array

    centers = vectors[:count]
    with Phase("clustering", total=_STEPS, unit="steps") as phase:
        for _ in range(_STEPS):
            nearest = nearest_centers(vectors, centers)
            members = csr_array(
                (np.ones(len(vectors), dtype=np.float32), (nearest, np.arange(len(vectors)))),
                shape=(count, len(vectors)),
            )
            sums = members @ vectors
            empty = np.bincount(nearest, minlength=count) == 0
            sums[empty] = centers[empty]
            centers = unit_rows(sums)
            phase.update(1)
    return centers


def nearest_centers(vectors: np.ndarray, centers: np.ndarray) -> np.ndarray:
    """Return the number of the nearest center of each vector, int64 (n,), computed on a GPU if there is one.

    Args:
        vectors: Unit vectors, float32 (n, d).
        centers: Unit vectors, float32 (k, d).
    """
    import torch

    from opencse.encoder.device import choose_device

    device = choose_device()
    columns = torch.from_numpy(centers).to(device).T
    # One array from the start: small results between large freed ones would keep their memory in use.
    nearest = np.empty(len(vectors), dtype=np.int64)
    for first in range(0, len(vectors), CHUNK):
        chunk = torch.from_numpy(vectors[first : first + CHUNK]).to(device)
        nearest[first : first + CHUNK] = (chunk @ columns).argmax(dim=1).cpu().numpy()
    return nearest


class _BuildBlock:
    """The task of a worker: sort the sentences of one block by cluster, and write them."""

    uses_gpu = True

    def __init__(self, vectors: StoredVectors) -> None:
        self._vectors = vectors
        self.folder = vectors.folder / f"clusters-{_VERSION}"

    def missing(self) -> list[int]:
        """Return the numbers of the blocks that are not built yet."""
        count = math.ceil(len(self._vectors.shards) / _SHARDS_AT_ONCE)
        return [block for block in range(count) if not self._place(block).is_dir()]

    def rows(self, block: int) -> range:
        """Return the numbers of the sentences of a block, copies included."""
        first = block * _SHARDS_AT_ONCE
        shards = self._vectors.shards[first : first + _SHARDS_AT_ONCE]
        return range(shards[0].start, shards[-1].stop)

    def open(self) -> None:
        self._centers = np.load(self.folder / "centers.npy")
        self._is_first = np.load(self.folder / "is_first.npy", mmap_mode="r")

    def __call__(self, block: int) -> int:
        rows = self.rows(block)
        numbers = rows.start + np.flatnonzero(self._is_first[rows.start : rows.stop])
        # A few vectors at a time, so that a worker takes little memory.
        chunks = np.split(numbers, range(CHUNK, len(numbers), CHUNK))
        nearest = np.concatenate(
            [nearest_centers(self._vectors.take(chunk), self._centers) for chunk in chunks]
        )
        order = np.argsort(nearest, kind="stable")
        starts = np.searchsorted(nearest[order], np.arange(len(self._centers) + 1))
        numbers = numbers[order]
        with replaced(self._place(block), folder=True) as folder:
            np.save(folder / "starts.npy", starts)
            np.save(folder / "numbers.npy", numbers)
            vectors = np.lib.format.open_memmap(
                folder / "vectors.npy",
                mode="w+",
                dtype=np.float16,
                shape=(len(numbers), self._vectors.dimension),
            )
            for first in range(0, len(numbers), CHUNK):
                vectors[first : first + CHUNK] = self._vectors.take(numbers[first : first + CHUNK])
            vectors.flush()
        return len(rows)

    def _place(self, block: int) -> Path:
        return self.folder / f"block-{block:06d}"


def search(
    index: Clusters,
    rows: np.ndarray,
    vectors: StoredVectors,
    *,
    size: int,
    window: tuple[float, float],
    limits: np.ndarray | None = None,
    probes: int = PROBES,
) -> tuple[CandidatePools, np.ndarray]:
    """Return what `candidate_pools.nearest` returns for the complete corpus, approximately.

    Of the clusters that are looked into, nothing is missed.

    Args:
        index: The index of the vectors.
        rows: Numbers of sentences, int64 (a,).
        vectors: The vectors of the corpus.
        size: Maximum size of a pool.
        window: Minimum and maximum cosine.
        limits: Maximum cosine of the candidates of each row, float32 (a,).
        probes: Number of clusters whose sentences are scored for a row.

    Returns:
        The candidates, nearest first, and how many were skipped because of the limit, int64 (a,).
    """
    scored = index.scored(vectors.take(rows), probes)
    keys = vectors.sentences.keys
    return nearest_of(scored, rows, keys, size=size, window=window, limits=limits)
