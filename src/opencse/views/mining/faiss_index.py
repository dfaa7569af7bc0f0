"""An approximate index of a corpus' vectors by faiss (extra `faiss`), its recall measured against the exact answer."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from opencse.errors import OpencseError
from opencse.io.files import replaced_file, write_json
from opencse.views.mining.pools import Pools, nearest
from opencse.views.mining.vectors import Vectors

_CHUNK = 65_536
_PER_CELL = 64  # vectors that each cell is trained on
_ASKED = 1000  # rows that recall is measured on
_NEAREST = 10
_MOST = 2048  # candidates that are asked for at most


class FaissIndex:
    """Inverted lists over the cells of a k-means clustering; a search looks into `probes` of some 4 sqrt(n) cells.

    Kept beside the vectors, and mapped from there. Searching takes O(sqrt(n)) time a row.
    """

    def __init__(self, vectors: Vectors, probes: int) -> None:
        self._vectors, self.probes = vectors, probes
        self.path = vectors.folder / "ivf.faiss"
        self._meta = vectors.folder / "ivf.json"

    @cached_property
    def meta(self) -> dict[str, Any]:
        """Cells, hash of the index, and recall by probes; {} where there is no index."""
        return json.loads(self._meta.read_text(encoding="utf-8")) if self._meta.is_file() else {}

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
    ) -> Pools:
        """As `opencse.views.mining.pools.nearest`, over the whole corpus, without what the index misses."""
        _faiss().omp_set_num_threads(1)
        ids = np.full((len(anchors), size), -1, dtype=np.int64)
        cosine = np.zeros((len(anchors), size), dtype=np.float32)
        open_rows, asked = np.arange(len(anchors)), min(2 * size + 20, len(keys))
        while len(open_rows):
            scores, found = self._index.search(anchors[open_rows], asked)
            exhausted = found[:, -1] < 0
            fits = (found >= 0) & (scores >= low) & (scores <= high[open_rows, None])
            own = keys[np.maximum(found, 0)]
            fits &= (own != anchor_keys[open_rows, None]) & _first_of_equals(own)
            rank = fits.cumsum(axis=1) - 1
            row, place = np.nonzero(fits & (rank < size))
            ids[open_rows[row], rank[row, place]] = found[row, place]
            cosine[open_rows[row], rank[row, place]] = scores[row, place]
            if asked >= min(_MOST, len(keys)):
                break
            open_rows = open_rows[(fits.sum(axis=1) < size) & ~exhausted & (scores[:, -1] >= low)]
            asked = min(4 * asked, _MOST, len(keys))
        return Pools(ids=ids, cosine=cosine)

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
        """The share of the exact ten nearest that the index finds, over up to 1,000 rows."""
        rows = len(self._vectors)
        asked = np.random.default_rng(1).choice(rows, size=min(_ASKED, rows), replace=False)
        anchors, ids = self._vectors.take(asked), np.arange(rows)
        keys, high = ids.astype(np.uint64), np.full(len(asked), np.inf)
        size = min(_NEAREST, rows - 1)
        exact = nearest(anchors, keys[asked], ids, keys, self._vectors.take, size=size, low=-np.inf, high=high)
        found = self.nearest(anchors, keys[asked], keys, size, -np.inf, high)
        return float((exact.ids[:, :, None] == found.ids[:, None, :]).any(axis=2).mean())


def open_faiss(vectors: Vectors, probes: int, notify: Callable[[str], None]) -> FaissIndex:
    """Build the index of a corpus unless it is there, and tell its recall."""
    index = FaissIndex(vectors, probes)
    if not index.meta:
        index.build()
        index = FaissIndex(vectors, probes)
    if str(probes) not in index.meta["recall"]:
        index.meta["recall"][str(probes)] = index.recall()
        write_json(index._meta, index.meta)
    recall = index.meta["recall"][str(probes)]
    notify(
        f"faiss: {probes} of {index.meta['cells']:,} cells looked into; finds {100 * recall:.1f} % of the ten nearest "
        f"({min(_ASKED, len(vectors)):,} rows compared with the exact answer)"
    )
    return index


def _first_of_equals(keys: np.ndarray) -> np.ndarray:
    """Which cells of each row hold a key that does not stand further left, bool (a, n)."""
    order = np.argsort(keys, axis=1, kind="stable")
    ordered = np.take_along_axis(keys, order, axis=1)
    fresh = np.ones(keys.shape, dtype=bool)
    fresh[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    out = np.empty_like(fresh)
    np.put_along_axis(out, order, fresh, axis=1)
    return out


def _faiss() -> Any:
    try:
        import faiss
    except ImportError:
        raise OpencseError('search = "faiss": faiss is not installed', "pip install 'opencse[faiss]'") from None
    return faiss
