"""Approximate nearest-neighbour index of a corpus by faiss (extra `faiss`), with measured recall."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from opencse.foundation.errors import OpencseError
from opencse.foundation.files import replaced_file, write_json
from opencse.foundation.reading import read_json
from opencse.text.mined.candidate_pools import CandidatePools, nearest
from opencse.text.mined.vectors import Vectors

_CHUNK = 65_536
_PER_CELL = 64  # vectors that each cell is trained on
_QUERIES = 1000  # rows on which recall is measured
_NEAREST = 10
_MAX_ASKED = 2048  # candidates that one search returns


class FaissIndex:
    """Inverted lists over the cells of a k-means clustering (IVF); a search visits `probes` of about 4 sqrt(n) cells.

    The index is kept next to the vectors and memory-mapped. A search takes O(sqrt(n)) time.

    Args:
        vectors: Vectors of the corpus.
        probes: Number of cells that a search visits.
    """

    def __init__(self, vectors: Vectors, probes: int) -> None:
        self._vectors, self.probes = vectors, probes
        self.path = vectors.folder / "ivf.faiss"
        self._meta = vectors.folder / "ivf.json"

    @cached_property
    def meta(self) -> dict[str, Any]:
        """Number of cells, hash of the index, and recall by probes; {} if there is no index yet, or a damaged one."""
        try:
            meta = read_json(self._meta)
            with self.path.open("rb") as file:
                whole = meta["sha256"] == hashlib.file_digest(file, "sha256").hexdigest()
            return meta if whole and isinstance(meta["recall"], dict) and isinstance(meta["cells"], int) else {}
        except (OpencseError, OSError, KeyError):
            return {}

    @cached_property
    def _index(self) -> Any:
        faiss = _faiss()
        index = faiss.read_index(str(self.path), faiss.IO_FLAG_MMAP)
        index.nprobe = self.probes
        return index

    def nearest(
        self,
        anchors: np.ndarray,
        anchor_keys: np.ndarray,
        keys: np.ndarray,
        size: int,
        low: float,
        high: np.ndarray,
    ) -> CandidatePools:
        """Return the nearest candidates that the index finds in the whole corpus; see `candidate_pools.nearest`."""
        _faiss().omp_set_num_threads(1)
        ids = np.full((len(anchors), size), -1, dtype=np.int64)
        cosine = np.zeros((len(anchors), size), dtype=np.float32)
        open_rows, asked = np.arange(len(anchors)), min(2 * size + 20, len(keys))
        while len(open_rows):
            scores, neighbours = self._index.search(anchors[open_rows], asked)
            exhausted = neighbours[:, -1] < 0
            fits = (neighbours >= 0) & (scores >= low) & (scores <= high[open_rows, None])
            own = keys[np.maximum(neighbours, 0)]
            fits &= (own != anchor_keys[open_rows, None]) & _first_of_equals(own)
            rank = fits.cumsum(axis=1) - 1
            row, place = np.nonzero(fits & (rank < size))
            ids[open_rows[row], rank[row, place]] = neighbours[row, place]
            cosine[open_rows[row], rank[row, place]] = scores[row, place]
            if asked >= min(_MAX_ASKED, len(keys)):
                break
            open_rows = open_rows[(fits.sum(axis=1) < size) & ~exhausted & (scores[:, -1] >= low)]
            asked = min(4 * asked, _MAX_ASKED, len(keys))
        return CandidatePools(ids=ids, cosine=cosine)

    def build(self) -> None:
        """Train on a sample, add all vectors, and write the index."""
        faiss, rows = _faiss(), len(self._vectors)
        cells = max(1, min(round(4 * rows**0.5), rows // 8))
        sample = np.sort(np.random.default_rng(0).choice(rows, size=min(rows, cells * _PER_CELL), replace=False))
        index = faiss.IndexIVFFlat(
            faiss.IndexFlatIP(self._vectors.dimension), self._vectors.dimension, cells, faiss.METRIC_INNER_PRODUCT
        )
        index.cp.min_points_per_centroid = 1  # no warning on a small corpus
        index.train(self._vectors.take(sample))
        for start in range(0, rows, _CHUNK):
            index.add(self._vectors.take(np.arange(start, min(start + _CHUNK, rows))))
        with replaced_file(self.path) as temporary:
            faiss.write_index(index, str(temporary))
        with self.path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        write_json(self._meta, {"cells": cells, "sha256": digest, "recall": {}})

    def recall(self) -> float:
        """Return the share of the ten nearest sentences that the index finds, over up to 1,000 rows."""
        rows = len(self._vectors)
        asked = np.random.default_rng(1).choice(rows, size=min(_QUERIES, rows), replace=False)
        anchors, ids = self._vectors.take(asked), np.arange(rows)
        keys, high = ids.astype(np.uint64), np.full(len(asked), np.inf)
        size = min(_NEAREST, rows - 1)
        exact = nearest(anchors, keys[asked], ids, keys, self._vectors.take, size=size, low=-np.inf, high=high)
        approximate = self.nearest(anchors, keys[asked], keys, size, -np.inf, high)
        return float((exact.ids[:, :, None] == approximate.ids[:, None, :]).any(axis=2).mean())


def open_faiss(vectors: Vectors, probes: int, notify: Callable[[str], None]) -> FaissIndex:
    """Open the index of a corpus, build it first if it is not there, and report its recall as a short note."""
    index = FaissIndex(vectors, probes)
    if not index.meta:
        index.build()
        index = FaissIndex(vectors, probes)
    if str(probes) not in index.meta["recall"]:
        index.meta["recall"][str(probes)] = index.recall()
        write_json(index._meta, index.meta)
    recall = index.meta["recall"][str(probes)]
    notify(
        f"faiss: {probes} of {index.meta['cells']:,} cells searched; finds {100 * recall:.1f} % of the ten nearest "
        f"({min(_QUERIES, len(vectors)):,} rows compared with the exact answer)"
    )
    return index


def _first_of_equals(keys: np.ndarray) -> np.ndarray:
    """Return a mask of the first occurrence of each key in its row, bool (a, n)."""
    order = np.argsort(keys, axis=1, kind="stable")
    ordered = np.take_along_axis(keys, order, axis=1)
    first = np.ones(keys.shape, dtype=bool)
    first[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    out = np.empty_like(first)
    np.put_along_axis(out, order, first, axis=1)
    return out


def _faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise OpencseError('search = "faiss": faiss is not installed', "pip install 'opencse[faiss]'") from None
    return faiss
