"""Approximate search of a complete corpus for the nearest sentences, with FAISS.

The index is an inverted file: k-means divides the vectors into clusters, and a search scores only
the sentences of the clusters whose centers are nearest. It is on disk, next to the vectors, in
blocks that are built one at a time and memory-mapped. Only numbers and keys of sentences, a few
dozen bytes each, are all in memory while it is built.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from opencse.foundation.errors import imported
from opencse.foundation.files import replaced
from opencse.foundation.progress import Phase
from opencse.text.mined.candidate_pools import CandidatePools

if TYPE_CHECKING:
    from opencse.text.views.registry import SentenceStore

# Clusters whose sentences are scored for each row; benchmarks/mining/recall.py has the recall.
PROBES = 64
# Clusters of a corpus, at most: k-means takes time in proportion to their square.
_MOST_CLUSTERS = 8192
# Sentences for each cluster that k-means learns from.
_SAMPLE = 64
# Shards in a block of the index.
_SHARDS_AT_ONCE = 32
# Candidates of the first look at a row, and of the last if the window leaves too few.
_FIRST_DEPTH = 64
_LAST_DEPTH = 2048
_VERSION = 1


class _StoredVectors(Protocol):
    """What the index needs of `opencse.text.mined.vectors.Vectors`."""

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
class Clusters:
    """The sentences of a corpus by cluster, in files that share the same clusters.

    Attributes:
        blocks: The FAISS index of each file; its lists are memory-mapped.
    """

    blocks: tuple[Any, ...]

    @property
    def count(self) -> int:
        """Number of clusters."""
        return int(self.blocks[0].nlist)

    def search(self, queries: np.ndarray, depth: int, probes: int) -> tuple[np.ndarray, np.ndarray]:
        """Return cosines and numbers of sentences, (n, depth), nearest first; missing ones are -1.

        Of equal cosines the earlier sentence comes first.

        Args:
            queries: Unit vectors, float32 (n, d).
            depth: Number of sentences.
            probes: Number of clusters whose sentences are scored.
        """
        probes = min(probes, self.count)
        distances, clusters = self.blocks[0].quantizer.search(queries, probes)
        cosine = np.empty((len(queries), 0), dtype=np.float32)
        numbers = np.empty((len(queries), 0), dtype=np.int64)
        for block in self.blocks:
            block.nprobe = probes
            scores, found = block.search_preassigned(queries, depth, clusters, distances)
            cosine = np.concatenate([cosine, scores], axis=1)
            numbers = np.concatenate([numbers, found], axis=1)
            best = np.lexsort((numbers, -cosine), axis=1)[:, :depth]
            cosine = np.take_along_axis(cosine, best, axis=1)
            numbers = np.take_along_axis(numbers, best, axis=1)
        return cosine, numbers


def open_index(vectors: _StoredVectors) -> Clusters:
    """Return the index of a corpus; build it unless it is in the cache.

    Later copies of a sentence, up to case and white space, are not in it.

    Args:
        vectors: The vectors of the corpus, all of them on disk.

    Raises:
        OpencseError: FAISS is not installed.
    """
    folder = vectors.folder / f"clusters-{_VERSION}"
    if not folder.is_dir():
        with replaced(folder, folder=True) as temporary:
            _build(vectors, temporary)
    return _opened(folder)


@lru_cache(maxsize=4)
def _opened(folder: Path) -> Clusters:
    faiss = imported("faiss", "faiss")
    blocks = []
    for path in sorted(folder.glob("block-*.faiss")):
        blocks.append(faiss.read_index(str(path), faiss.IO_FLAG_MMAP))
    return Clusters(tuple(blocks))


def _build(vectors: _StoredVectors, folder: Path) -> None:
    """Write the index in blocks, so that only one of them is in memory."""
    faiss = imported("faiss", "faiss")
    keys = vectors.sentences.keys
    _, firsts = np.unique(keys, return_index=True)
    is_first = np.zeros(len(keys), dtype=bool)
    is_first[firsts] = True

    with Phase("indexing", total=len(keys), unit="sentences") as phase:
        index = _trained(faiss, vectors, np.flatnonzero(is_first))
        shards = vectors.shards
        for start in range(0, len(shards), _SHARDS_AT_ONCE):
            index.reset()  # keeps the clusters
            for rows in shards[start : start + _SHARDS_AT_ONCE]:
                ids = rows.start + np.flatnonzero(is_first[rows.start : rows.stop])
                index.add_with_ids(vectors.take(ids), ids)
                phase.update(len(rows))
            faiss.write_index(index, str(folder / f"block-{start:08d}.faiss"))


def _trained(faiss: Any, vectors: _StoredVectors, ids: np.ndarray) -> Any:
    """Return an index with clusters, but without any sentence; vectors have 16 bits a number, as on disk."""
    clusters = round(2 * math.sqrt(len(ids)))
    clusters = max(1, min(clusters, _MOST_CLUSTERS, len(ids) // _SAMPLE))
    size = min(len(ids), clusters * _SAMPLE)
    sample = np.random.default_rng(0).choice(ids, size=size, replace=False)
    index = faiss.index_factory(
        vectors.dimension, f"IVF{clusters},SQfp16", faiss.METRIC_INNER_PRODUCT
    )
    index.train(vectors.take(np.sort(sample)))
    return index


def search(
    index: Clusters,
    rows: np.ndarray,
    vectors: _StoredVectors,
    *,
    size: int,
    window: tuple[float, float],
    limits: np.ndarray | None = None,
    probes: int = PROBES,
) -> tuple[CandidatePools, np.ndarray]:
    """Return what `candidate_pools.nearest` returns for the complete corpus, approximately.

    Cosines differ by less than 0.0001, and some of the nearest sentences may be missing. If the nearest are above
    the window or the limit, the search goes deeper, down to the 2,048 nearest.

    Args:
        index: The index of the vectors.
        rows: Numbers of sentences, int64 (a,).
        vectors: The vectors of the corpus.
        size: Maximum size of a pool.
        window: Minimum and maximum cosine.
        limits: Maximum cosine of the candidates of each row, float32 (a,).
        probes: Number of clusters whose sentences are scored.

    Returns:
        The candidates, nearest first, and how many were skipped because of the limit, int64 (a,).
    """
    keys = vectors.sentences.keys
    queries = vectors.take(rows)
    low = np.float32(window[0])
    high = np.float32(window[1])
    tops = np.full(len(rows), high)
    if limits is not None:
        tops = np.minimum(high, limits)

    ids = np.full((len(rows), size), -1, dtype=np.int64)
    cosine = np.zeros((len(rows), size), dtype=np.float32)
    skipped = np.zeros(len(rows), dtype=np.int64)
    unfinished = np.arange(len(rows))
    depth = max(_FIRST_DEPTH, 2 * size)
    while len(unfinished):
        scores, numbers = index.search(queries[unfinished], depth, probes)
        # A missing sentence is -1, of which `keys` gives the last key.
        found = (numbers >= 0) & (keys[numbers] != keys[rows[unfinished]][:, None])
        inside = found & (scores >= low) & (scores <= high)
        allowed = inside & (scores <= tops[unfinished][:, None])
        skipped[unfinished] = (inside & ~allowed).sum(axis=1)
        place = allowed.cumsum(axis=1) - 1
        row, column = np.nonzero(allowed & (place < size))
        ids[unfinished[row], place[row, column]] = numbers[row, column]
        cosine[unfinished[row], place[row, column]] = scores[row, column]

        full = allowed.sum(axis=1) >= size
        exhausted = (numbers < 0).any(axis=1) | (scores.min(axis=1) < low)
        if depth >= _LAST_DEPTH:
            break
        unfinished = unfinished[~full & ~exhausted]
        depth = min(4 * depth, max(_LAST_DEPTH, 2 * size))
    return CandidatePools(ids=ids, cosine=cosine), skipped
