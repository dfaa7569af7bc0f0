"""The candidate pool of each row: the sentences of a corpus that it may draw from, by cosine similarity.

A pool holds the first n candidates, in random order, whose cosine lies in a window (`in_window`), or the k nearest
candidates within bounds (`nearest`). Rows are scored against chunks of candidates by matrix products, so memory does
not grow with the corpus.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

CHUNK = 2048  # candidates in one matrix product
TILE = 512  # rows in one matrix product: the scores fit in a core's cache
_NONE = -1

Take = Callable[[np.ndarray], np.ndarray]
"""Maps numbers of sentences, int64 (m,), to their unit vectors, float32 (m, d)."""


@dataclass(frozen=True, kw_only=True)
class CandidatePools:
    """Candidates of `a` rows, up to n each.

    Attributes:
        ids: Numbers of sentences, int64 (a, n), padded with -1.
        cosine: Cosine similarity of row and candidate, float32 (a, n), padded with 0.
    """

    ids: np.ndarray
    cosine: np.ndarray

    @property
    def valid(self) -> np.ndarray:
        """Mask of the candidates that exist, bool (a, n)."""
        return self.ids >= 0

    @property
    def sizes(self) -> np.ndarray:
        """Size of each pool, int64 (a,)."""
        return self.valid.sum(axis=1)


def scoring_memory(rows: int, dimension: int, size: int) -> int:
    """Return the maximum memory of `in_window` and `nearest` in bytes, for rows that keep `size` candidates each."""
    tile = TILE * (CHUNK + size) * 64  # scores, masks, and positions of the candidates found
    return tile + (3 * CHUNK + rows) * dimension * 4 + rows * size * 40


def random_block(rows: int, size: int, seed: int) -> np.ndarray:
    """Return min(size, rows) distinct numbers below `rows` in random order, int64."""
    return np.random.default_rng(seed).choice(rows, size=min(size, rows), replace=False)


def without_copies(ids: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Return the candidates in their order, without those whose key has occurred before."""
    _, first = np.unique(keys, return_index=True)
    return ids[np.sort(first)]


def in_window(
    anchors: np.ndarray,
    anchor_keys: np.ndarray,
    candidates: np.ndarray,
    candidate_keys: np.ndarray,
    take: Take,
    *,
    size: int,
    window: tuple[float, float],
) -> CandidatePools:
    """Return for each row the first `size` candidates whose cosine lies in the window (both ends included).

    If the candidates are in random order, this is a uniform random sample of those in the window. Rows with a full pool
    are not scored any further.

    Args:
        anchors: Unit vectors, float32 (a, d).
        anchor_keys: Keys of the rows' texts, uint64 (a,): a copy of the row is never a candidate.
        candidates: Numbers of sentences, int64 (c,).
        candidate_keys: Keys of their texts, uint64 (c,).
        take: Returns unit vectors by number.
        size: n, the maximum size of a pool.
        window: Minimum and maximum cosine.
    """
    low, high = np.float32(window[0]), np.float32(window[1])
    ids = np.full((len(anchors), size), _NONE, dtype=np.int64)
    cosine = np.zeros((len(anchors), size), dtype=np.float32)
    filled = np.zeros(len(anchors), dtype=np.int64)
    active = np.arange(len(anchors))
    for start in range(0, len(candidates), CHUNK):
        if not len(active):
            break
        chunk = slice(start, start + CHUNK)
        numbers, keys, vectors = candidates[chunk], candidate_keys[chunk], take(candidates[chunk])
        for first in range(0, len(active), TILE):
            tile = active[first : first + TILE]
            scores = anchors[tile] @ vectors.T
            row, column = _found((scores >= low) & (scores <= high))
            other = keys[column] != anchor_keys[tile[row]]
            row, column = row[other], column[other]
            place = filled[tile[row]] + _rank(row)
            fits = place < size
            row, column, place = row[fits], column[fits], place[fits]
            ids[tile[row], place] = numbers[column]
            cosine[tile[row], place] = scores[row, column]
            filled[tile] += np.bincount(row, minlength=len(tile))
        active = active[filled[active] < size]
    return CandidatePools(ids=ids, cosine=cosine)


def nearest(
    anchors: np.ndarray,
    anchor_keys: np.ndarray,
    candidates: np.ndarray,
    candidate_keys: np.ndarray,
    take: Take,
    *,
    size: int,
    low: float,
    high: np.ndarray,
) -> CandidatePools:
    """Return for each row the `size` candidates with the highest cosine within bounds, the nearest first.

    Arguments as in `in_window`; the candidates may be in any order, and `high` is the maximum cosine of each row, (a,).
    """
    count = len(anchors)
    best = CandidatePools(
        ids=np.full((count, size), _NONE, dtype=np.int64), cosine=np.full((count, size), -np.inf, dtype=np.float32)
    )
    high = np.nextafter(high.astype(np.float32), np.float32(np.inf))[:, None]
    low32 = np.nextafter(np.float32(low), np.float32(-np.inf))
    for start in range(0, len(candidates), CHUNK):
        chunk = slice(start, start + CHUNK)
        numbers, keys, vectors = candidates[chunk], candidate_keys[chunk], take(candidates[chunk])
        for first in range(0, count, TILE):
            tile = slice(first, first + TILE)
            scores = anchors[tile] @ vectors.T
            bar = np.maximum(best.cosine[tile].min(axis=1), low32)[:, None]  # the cosine that a candidate has to exceed
            row, column = _found((scores > bar) & (scores < high[tile]))
            other = keys[column] != anchor_keys[tile][row]
            row, column = row[other], column[other]
            if len(row):
                pools = CandidatePools(ids=best.ids[tile], cosine=best.cosine[tile])
                merged = _merged(pools, row, numbers[column], scores[row, column])
                best.ids[tile], best.cosine[tile] = merged.ids, merged.cosine
    order = np.lexsort((best.ids, -best.cosine), axis=1)
    ids, cosine = (np.take_along_axis(part, order, axis=1) for part in (best.ids, best.cosine))
    return CandidatePools(ids=ids, cosine=np.where(ids >= 0, cosine, np.float32(0)))


def _merged(best: CandidatePools, row: np.ndarray, ids: np.ndarray, cosine: np.ndarray) -> CandidatePools:
    """Merge more candidates, sorted by row, into the best of each row; the sizes stay as they are."""
    count, size = best.ids.shape
    rank = _rank(row)
    more_ids = np.full((count, size + int(rank.max()) + 1), _NONE, dtype=np.int64)
    more_cosine = np.full(more_ids.shape, -np.inf, dtype=np.float32)
    more_ids[:, :size], more_cosine[:, :size] = best.ids, best.cosine
    more_ids[row, size + rank], more_cosine[row, size + rank] = ids, cosine
    best_places = np.argpartition(-more_cosine, size - 1, axis=1)[:, :size]
    return CandidatePools(
        ids=np.take_along_axis(more_ids, best_places, axis=1),
        cosine=np.take_along_axis(more_cosine, best_places, axis=1),
    )


def _found(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of the true cells, like `nonzero`, but faster if they are few."""
    flat = np.flatnonzero(mask)
    row = flat // mask.shape[1]
    return row, flat - row * mask.shape[1]


def _rank(row: np.ndarray) -> np.ndarray:
    """Return the position of each entry among the entries of its row, from 0; the rows are sorted."""
    first = np.flatnonzero(np.diff(row, prepend=-1))
    return np.arange(len(row)) - np.repeat(first, np.diff(np.append(first, len(row))))
