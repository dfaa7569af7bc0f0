"""Candidate pools: which sentences of a corpus come into question for which row, by cosine.

Rows are scored against candidates in chunks of a matrix product, so that memory does not grow with the corpus. Two
questions are answered: the first n candidates, in a random order, whose cosine lies in a window (`in_window`), and the
k nearest ones within bounds (`nearest`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

CHUNK = 2048  # candidates that are scored at a time,
TILE = 512  # against so many rows: their scores stay in a core's cache
_NONE = -1

Take = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Pools:
    """Candidates of a rows, up to n each.

    Attributes:
        ids: Numbers of sentences, int64 (a, n), -1 where a pool is smaller.
        cosine: float32 (a, n), 0 where there is none.
    """

    ids: np.ndarray
    cosine: np.ndarray

    @property
    def there(self) -> np.ndarray:
        """Which candidates exist, bool (a, n)."""
        return self.ids >= 0

    @property
    def sizes(self) -> np.ndarray:
        """Members of each pool, int64 (a,)."""
        return self.there.sum(axis=1)


def scoring_memory(rows: int, dimension: int, kept: int) -> int:
    """Bytes that `in_window` and `nearest` take at most for so many rows, of which `kept` candidates each are kept."""
    tile = TILE * (CHUNK + kept) * 64  # scores, masks, and the places of what was found
    return tile + (3 * CHUNK + rows) * dimension * 4 + rows * kept * 40


def random_block(rows: int, size: int, seed: int) -> np.ndarray:
    """Return `size` numbers below `rows` in random order, each at most once; all of them where there are fewer."""
    return np.random.default_rng(seed).choice(rows, size=min(size, rows), replace=False)


def without_copies(ids: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Return the candidates, in their order, but of equal keys only the first."""
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
) -> Pools:
    """Return for each row the first `size` candidates whose cosine lies in the window (both ends included).

    With candidates in random order this is a random sample of all in the window. Rows that have enough are left out of
    the rest, so that the cost is that of meeting `size` of them, or of all candidates.

    Args:
        anchors: Unit vectors, float32 (a, d).
        anchor_keys: Keys of the rows' texts, uint64 (a,): a copy is never a candidate of its own.
        candidates: Numbers of sentences, int64 (c,).
        candidate_keys: Their keys, uint64 (c,).
        take: Numbers to unit vectors.
        size: n.
        window: Least and greatest cosine.
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
    return Pools(ids=ids, cosine=cosine)


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
) -> Pools:
    """Return for each row the `size` candidates of greatest cosine within bounds, nearest first.

    Args:
        anchors: Unit vectors, float32 (a, d).
        anchor_keys: As in `in_window`.
        candidates: As in `in_window`, in any order.
        candidate_keys: As in `in_window`.
        take: As in `in_window`.
        size: k.
        low: Least cosine.
        high: Greatest cosine of each row, (a,).
    """
    count = len(anchors)
    best = Pools(
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
            bar = np.maximum(best.cosine[tile].min(axis=1), low32)[:, None]  # what a candidate has to surpass
            row, column = _found((scores > bar) & (scores < high[tile]))
            other = keys[column] != anchor_keys[tile][row]
            row, column = row[other], column[other]
            if len(row):
                some = Pools(ids=best.ids[tile], cosine=best.cosine[tile])
                merged = _merged(some, row, numbers[column], scores[row, column])
                best.ids[tile], best.cosine[tile] = merged.ids, merged.cosine
    order = np.lexsort((best.ids, -best.cosine), axis=1)
    ids, cosine = (np.take_along_axis(part, order, axis=1) for part in (best.ids, best.cosine))
    return Pools(ids=ids, cosine=np.where(ids >= 0, cosine, np.float32(0)))


def _merged(best: Pools, row: np.ndarray, ids: np.ndarray, cosine: np.ndarray) -> Pools:
    """Put more candidates (sorted by row) to the best of each row, and keep as many as there were."""
    count, size = best.ids.shape
    rank = _rank(row)
    more_ids = np.full((count, size + int(rank.max()) + 1), _NONE, dtype=np.int64)
    more_cosine = np.full(more_ids.shape, -np.inf, dtype=np.float32)
    more_ids[:, :size], more_cosine[:, :size] = best.ids, best.cosine
    more_ids[row, size + rank], more_cosine[row, size + rank] = ids, cosine
    kept = np.argpartition(-more_cosine, size - 1, axis=1)[:, :size]
    return Pools(ids=np.take_along_axis(more_ids, kept, axis=1), cosine=np.take_along_axis(more_cosine, kept, axis=1))


def _found(mask: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows and columns of the true cells, row by row: `nonzero`, several times as fast for few of them."""
    flat = np.flatnonzero(mask)
    row = flat // mask.shape[1]
    return row, flat - row * mask.shape[1]


def _rank(row: np.ndarray) -> np.ndarray:
    """For each entry of sorted rows, which of its row's entries it is, from 0."""
    first = np.flatnonzero(np.diff(row, prepend=-1))
    return np.arange(len(row)) - np.repeat(first, np.diff(np.append(first, len(row))))
