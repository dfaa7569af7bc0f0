"""Candidate pools: the sentences of a corpus that a row may draw from, and the draw.

A pool holds the first n candidates, in random order, whose cosine lies in a window (`in_window`),
or the k nearest candidates in it (`nearest`). Rows are scored against chunks of candidates by
matrix products, so memory does not grow with the corpus.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

# Candidates in one matrix product.
CHUNK = 2048
# Rows in one matrix product: the scores fit in a core's cache.
TILE = 512


Take = Callable[[np.ndarray], np.ndarray]
"""Maps numbers of sentences, int64 (m,), to their unit vectors, float32 (m, d)."""

Scored = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Indices of rows, int64 (t,), numbers of candidates, int64 (c,), and their cosines, float32 (t, c)."""


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

    def at(self, places: np.ndarray) -> CandidatePools:
        """Return the candidates at some positions of each pool, int64 (a, m); -1 for none."""
        ids = np.where(places >= 0, np.take_along_axis(self.ids, places, axis=1), -1)
        cosine = np.take_along_axis(self.cosine, places, axis=1)
        return CandidatePools(ids=ids, cosine=cosine)


def draw(
    scores: np.ndarray, valid: np.ndarray, noise: np.ndarray, *, count: int, temperature: float
) -> np.ndarray:
    """Draw candidates without replacement, ∝ exp(score / temperature) (Gumbel top-k).

    The `count` highest values of score + temperature x noise are such a draw; temperature 0 takes
    the highest scores, and the first of equal ones.

    Args:
        scores: Selection scores.
        valid: Mask of the candidates that exist.
        noise: Standard Gumbel noise.
        count: m, the number of candidates to draw.
        temperature: Temperature; 0 for the arg-max.

    Returns:
        int64 (a, count): positions in the pool in the order of the draw; -1 if the pool is
        exhausted.
    """
    rows, n = scores.shape
    key = scores + temperature * noise
    key[~valid] = -np.inf
    out = np.full((rows, count), -1, dtype=np.int64)
    for k in range(min(count, n)):
        best = key.argmax(axis=1)
        drawn = np.flatnonzero(key[np.arange(rows), best] > -np.inf)
        out[drawn, k] = best[drawn]
        key[drawn, best[drawn]] = -np.inf
    return out


def gumbel_noise(row_seeds: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Return standard Gumbel noise that depends only on a row's seed and a candidate's number.

    Args:
        row_seeds: Well-mixed seeds of the rows (`opencse.text.views.registry.row_seed`), uint64
            (a,).
        candidates: Numbers of the candidates, int64 (a, n).

    Returns:
        float64 (a, n), finite.
    """
    # SplitMix64: one addition, then two rounds of shift, xor and multiply.
    steps = candidates.astype(np.uint64) + np.uint64(1)
    bits = row_seeds[:, None] + steps * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits ^= bits >> np.uint64(shift)
        bits *= np.uint64(factor)
    bits ^= bits >> np.uint64(31)
    # The half keeps the uniform numbers strictly between 0 and 1.
    uniform = ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
    return -np.log(-np.log(uniform))


def random_block(rows: int, size: int, seed: int) -> np.ndarray:
    """Return min(size, rows) distinct numbers below `rows` in random order, int64."""
    return np.random.default_rng(seed).choice(rows, size=min(size, rows), replace=False)


def without_copies(ids: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Return the candidates in their order, without later copies (candidates of the same key)."""
    _, first = np.unique(keys[ids], return_index=True)
    return ids[np.sort(first)]


def in_window(
    rows: np.ndarray,
    candidates: np.ndarray,
    keys: np.ndarray,
    take: Take,
    *,
    size: int,
    window: tuple[float, float],
) -> CandidatePools:
    """Return for each row the first `size` candidates whose cosine lies in the closed window.

    If the candidates are in random order, this is a uniform random sample of those in the window.
    Rows with a full pool are not scored any further. A copy of the row is never a candidate.

    Args:
        rows: Numbers of sentences, int64 (a,).
        candidates: Numbers of sentences, int64 (c,).
        keys: Key of each sentence, uint64 (n,); those of copies are equal.
        take: Gives the vectors of sentences.
        size: n, the maximum size of a pool.
        window: Minimum and maximum cosine.
    """
    low = np.float32(window[0])
    high = np.float32(window[1])
    ids = np.full((len(rows), size), -1, dtype=np.int64)
    cosine = np.zeros((len(rows), size), dtype=np.float32)
    filled = np.zeros(len(rows), dtype=np.int64)
    active = np.ones(len(rows), dtype=bool)
    for tile, numbers, scores in _scored(rows, candidates, take, active):
        inside = (scores >= low) & (scores <= high)
        row, column = _found(inside, keys[rows[tile]], keys[numbers])
        place = filled[tile[row]] + _rank(row)
        fits = place < size
        row = row[fits]
        column = column[fits]
        place = place[fits]
        ids[tile[row], place] = numbers[column]
        cosine[tile[row], place] = scores[row, column]
        filled[tile] += np.bincount(row, minlength=len(tile))
        active[tile] = filled[tile] < size
    return CandidatePools(ids=ids, cosine=cosine)


def nearest(
    rows: np.ndarray,
    candidates: np.ndarray,
    keys: np.ndarray,
    take: Take,
    *,
    size: int,
    window: tuple[float, float],
    limits: np.ndarray | None = None,
) -> tuple[CandidatePools, np.ndarray]:
    """Return for each row the `size` candidates of highest cosine in the window, nearest first.

    Args:
        rows: As in `in_window`.
        candidates: As in `in_window`, but in any order.
        keys: As in `in_window`.
        take: As in `in_window`.
        size: As in `in_window`.
        window: As in `in_window`.
        limits: Maximum cosine of the candidates of each row, float32 (a,), as if its window ended
            there.

    Returns:
        The candidates, and how many in the window were skipped because of the limit, int64 (a,).
    """
    active = np.ones(len(rows), dtype=bool)
    scored = _scored(rows, candidates, take, active)
    return nearest_of(scored, rows, keys, size=size, window=window, limits=limits)


def nearest_of(
    scored: Iterable[Scored],
    rows: np.ndarray,
    keys: np.ndarray,
    *,
    size: int,
    window: tuple[float, float],
    limits: np.ndarray | None = None,
) -> tuple[CandidatePools, np.ndarray]:
    """Return what `nearest` does, of the candidates that were scored for each row.

    Args:
        scored: Candidates with their cosines, in any order, each at most once for a row.
        rows: As in `nearest`.
        keys: As in `nearest`.
        size: As in `nearest`.
        window: As in `nearest`.
        limits: As in `nearest`.
    """
    ids = np.full((len(rows), size), -1, dtype=np.int64)
    cosine = np.full((len(rows), size), -np.inf, dtype=np.float32)
    # A cosine has to exceed the bar, so the lower end opens by one step to be included.
    low = np.nextafter(np.float32(window[0]), np.float32(-np.inf))
    high = np.float32(window[1])
    tops = np.full(len(rows), high)
    if limits is not None:
        tops = np.minimum(high, limits)
    skipped = np.zeros(len(rows), dtype=np.int64)
    for tile, numbers, scores in scored:
        row_keys = keys[rows[tile]]
        candidate_keys = keys[numbers]
        if limits is not None:
            over = (scores > np.maximum(tops[tile], low)[:, None]) & (scores <= high)
            skipped_row, _ = _found(over, row_keys, candidate_keys)
            skipped[tile] += np.bincount(skipped_row, minlength=len(scores))
        # The cosine that a candidate has to exceed.
        bar = np.maximum(cosine[tile].min(axis=1), low)[:, None]
        better = (scores > bar) & (scores <= tops[tile][:, None])
        row, column = _found(better, row_keys, candidate_keys)
        if len(row):
            # Append the candidates to the pool so far, and keep the best `size`.
            rank = _rank(row)
            padding = ((0, 0), (0, int(rank.max()) + 1))
            more = np.pad(ids[tile], padding, constant_values=-1)
            more_cosine = np.pad(cosine[tile], padding, constant_values=-np.inf)
            more[row, size + rank] = numbers[column]
            more_cosine[row, size + rank] = scores[row, column]
            best = np.argpartition(-more_cosine, size - 1, axis=1)[:, :size]
            ids[tile] = np.take_along_axis(more, best, axis=1)
            cosine[tile] = np.take_along_axis(more_cosine, best, axis=1)
    pools = CandidatePools(ids=ids, cosine=np.where(ids >= 0, cosine, np.float32(0)))
    order = np.lexsort((ids, -cosine), axis=1)
    return pools.at(order), skipped


def _scored(
    rows: np.ndarray, candidates: np.ndarray, take: Take, active: np.ndarray
) -> Iterator[Scored]:
    """Yield indices of active rows, numbers of candidates, and their cosines.

    `active` is read again for each chunk of candidates, as the caller changes it.
    """
    anchors = take(rows)
    for start in range(0, len(candidates), CHUNK):
        numbers = candidates[start : start + CHUNK]
        tiles = np.flatnonzero(active)
        vectors = take(numbers) if len(tiles) else anchors
        for first in range(0, len(tiles), TILE):
            tile = tiles[first : first + TILE]
            yield tile, numbers, anchors[tile] @ vectors.T


def _found(
    mask: np.ndarray, row_keys: np.ndarray, keys: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows and columns of the true cells whose keys differ.

    Like `nonzero`, but faster if few cells are true.
    """
    row, column = np.divmod(np.flatnonzero(mask), mask.shape[1])
    differ = keys[column] != row_keys[row]
    return row[differ], column[differ]


def _rank(row: np.ndarray) -> np.ndarray:
    """Return the position of each entry among the entries of its row, from 0; rows are sorted."""
    first = np.flatnonzero(np.diff(row, prepend=-1))
    return np.arange(len(row)) - np.repeat(first, np.diff(np.append(first, len(row))))
