"""Word alignment: how many words of a hypothesis are substituted, deleted, inserted or correct, for columns of pairs.

The counts depend on which of the shortest alignments is taken. Here the back-trace, from the last words to the first,
prefers match, then substitution, then insertion, then deletion: the order under which the medians and the counts of
OssCSE (Table 2) come out. rapidfuzz and jiwer prefer otherwise, so the dynamic programme is run here: all pairs of a
block at once, one anti-diagonal after another, each cell packing (distance, choice, substitutions) into one integer so
that the smallest candidate is the preferred one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np

from opencse.surface.words import WordColumn, split_words

_CHUNK = 1 << 18  # pairs that are held as numbers at a time
_PIECE = 1 << 12  # texts that one thread cuts at a time: their bytes stay in a core's cache
_BLOCK = 1 << 15  # cells on the longest anti-diagonal of one block: a few of them stay in a core's cache
_STRIDE = 6  # words that are compared at a time to find what a pair begins or ends with
_BLOCKS = 8  # that are cut at a time


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """Counts of words for n pairs, each int64 (n,).

    Attributes:
        substitutions: S.
        deletions: D, words of the reference without a counterpart.
        insertions: I, words of the hypothesis without a counterpart.
        correct: C, words that are equal and aligned.
    """

    substitutions: np.ndarray
    deletions: np.ndarray
    insertions: np.ndarray
    correct: np.ndarray

    @property
    def errors(self) -> np.ndarray:
        """S + D + I, the word edit distance."""
        return self.substitutions + self.deletions + self.insertions

    @property
    def match_error_rate(self) -> np.ndarray:
        """(S + D + I) / (S + D + I + C) (OssCSE eq. 1), float64 (n,); 0 for two empty texts."""
        total = self.errors + self.correct
        return np.divide(self.errors, total, out=np.zeros(len(total)), where=total > 0)


def align(
    references: Sequence[str], hypotheses: Sequence[str], *, lower: bool = True, workers: int | None = None
) -> Alignment:
    """Align the words of each hypothesis with those of its reference.

    Words are what `str.split()` gives, lower-cased unless `lower` is false: so does OssCSE, whose sentences are
    lower-cased by SentEval.

    Args:
        references: n texts.
        hypotheses: n texts.
        lower: Compare without regard to case.
        workers: Threads; None for one per core.

    Raises:
        ValueError: The columns differ in length.
    """
    if len(references) != len(hypotheses):
        raise ValueError(f"{len(references)} references, but {len(hypotheses)} hypotheses")

    chunks = range(0, len(references), _CHUNK)
    workers = min(workers or os.cpu_count() or 1, -(-len(references) // _PIECE))
    with ThreadPoolExecutor(workers) if workers > 1 else nullcontext() as pool:  # NumPy lets go of the interpreter
        run = pool.map if pool else map
        parts = [_align(references[i : i + _CHUNK], hypotheses[i : i + _CHUNK], lower, run) for i in chunks]
    none = (np.zeros(0, dtype=np.int64),) * 4
    m, n, distance, substitutions = (np.concatenate(column) for column in zip(none, *parts, strict=True))
    correct = (m + n - distance - substitutions) // 2  # from S + D + C = m, S + I + C = n, S + D + I = distance
    return Alignment(
        substitutions=substitutions,
        deletions=m - substitutions - correct,
        insertions=n - substitutions - correct,
        correct=correct,
    )


def _align(
    references: Sequence[str], hypotheses: Sequence[str], lower: bool, run: Callable[..., Iterable[Any]]
) -> tuple[np.ndarray, ...]:
    """Words of the references and the hypotheses, distance and substitutions of each pair, all int64 (n,)."""

    def cut(start: int) -> tuple[WordColumn, WordColumn, tuple[np.ndarray, ...]]:
        part = slice(start, start + _PIECE)
        reference, hypothesis = split_words(references[part], lower=lower), split_words(hypotheses[part], lower=lower)
        return reference, hypothesis, _trimmed(reference, hypothesis)

    pieces = list(run(cut, range(0, len(references), _PIECE)))
    words = [np.concatenate([piece[side].keys for piece in pieces]) for side in (0, 1)]
    firsts = [np.cumsum([0, *(len(piece[side].keys) for piece in pieces)]) for side in (0, 1)]
    a = np.concatenate([piece[2][0] + first for piece, first in zip(pieces, firsts[0], strict=False)])
    b = np.concatenate([piece[2][1] + first for piece, first in zip(pieces, firsts[1], strict=False)])
    m, n = (np.concatenate([piece[2][k] for piece in pieces]) for k in (2, 3))
    distance, substitutions = np.maximum(m, n), np.zeros(len(m), dtype=np.int64)  # right where a side is empty

    def solve(rows: np.ndarray) -> None:
        distance[rows], substitutions[rows] = _block(words[0], words[1], a[rows], b[rows], m[rows], n[rows])

    list(run(solve, list(_blocks(m, n))))
    lengths = [np.concatenate([piece[side].lengths for piece in pieces]) for side in (0, 1)]
    return lengths[0], lengths[1], distance, substitutions


def _trimmed(reference: WordColumn, hypothesis: WordColumn) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """First word (of all keys) and number of words of each text, without the words that a pair begins or ends with.

    This changes neither the distance nor the substitutions. At the end the back-trace takes the matches first anyway.
    Removing a common beginning of k words keeps the distance of every cell (i, j) with i, j >= k, hence each choice
    there, up to the first cell with i = k or j = k; from that one, every shortest way on has no substitution, as its
    distance is |i - j|.
    """
    a, b = reference.offsets[:-1].copy(), hypothesis.offsets[:-1].copy()
    m, n = reference.lengths, hypothesis.lengths
    step = np.arange(_STRIDE)[:, None]
    for last in (True, False):
        rows = np.flatnonzero(np.minimum(m, n) > 0)
        while len(rows):
            i, j = (
                (a[rows] + m[rows] - 1 - step, b[rows] + n[rows] - 1 - step)
                if last
                else (a[rows] + step, b[rows] + step)
            )
            same = np.zeros((_STRIDE + 1, len(rows)), dtype=bool)  # the last row stays false
            np.equal(np.take(reference.keys, i, mode="clip"), np.take(hypothesis.keys, j, mode="clip"), out=same[:-1])
            same[:-1] &= step < np.minimum(m[rows], n[rows])
            count = same.argmin(axis=0)
            m[rows] -= count
            n[rows] -= count
            if not last:
                a[rows] += count
                b[rows] += count
            rows = rows[count == _STRIDE]
    return a, b, m, n


def _blocks(m: np.ndarray, n: np.ndarray) -> Iterator[np.ndarray]:
    """Yield rows of like m and n, each block sorted by m + n; pairs with an empty side are left out."""
    order = np.argsort(np.minimum(m, 65535).astype(np.uint16), kind="stable")  # 16 bits sort fastest
    order = order[np.minimum(m, n)[order] > 0]
    start = 0
    while start < len(order):
        height = m[order[start : start + _BLOCK // m[order[start]] + 1]]
        size = max(1, int(np.searchsorted(height * np.arange(1, len(height) + 1), _BLOCK, side="right")))
        group = order[start : start + _BLOCKS * size]  # like m
        group = group[np.argsort(n[group])]
        for first in range(0, len(group), size):
            rows = group[first : first + size]  # like n too
            yield rows[np.argsort((m + n)[rows])]
        start += len(group)


def _block(
    reference: np.ndarray, hypothesis: np.ndarray, a: np.ndarray, b: np.ndarray, m: np.ndarray, n: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Run the dynamic programme for pairs sorted by m + n: cell (i, j) is row i of anti-diagonal i + j, column = pair.

    A pair's result depends on no cell beyond its own last one, so what stands there does not matter.
    """
    height, width = int(m.max()), int(n.max())
    bits = int(max(height, width) + 1).bit_length()  # of a count of words, or of a distance and one more
    dtype: Any = next(t for t in (np.uint16, np.uint32, np.uint64) if 2 * bits + 2 <= 8 * np.dtype(t).itemsize)
    one = dtype(1 << (bits + 2))  # one error
    substitution = one | dtype(1)  # the lowest bits count these
    insertion, deletion = one | dtype(1 << bits), one | dtype(2 << bits)  # choices of rank 1 and 2; diagonal steps 0
    keep = dtype(np.iinfo(dtype).max ^ (3 << bits))  # forgets the choice
    border = np.arange(max(height, width) + 1).astype(dtype) * one

    step = np.arange(height)[:, None]
    words = np.take(reference, a + step, mode="clip")
    step = np.arange(width)[::-1, None]
    others = np.take(hypothesis, b + step, mode="clip")  # others[width - j] is word j
    before, last, now, aside = (np.zeros((height + 1, len(m)), dtype=dtype) for _ in range(4))  # cell (0, 0) is 0
    unequal = np.empty((height, len(m)), dtype=bool)
    final = np.zeros(len(m), dtype=dtype)
    ended = np.searchsorted(m + n, np.arange(height + width + 2))  # pairs that end before each anti-diagonal
    for diagonal in range(1, int(m[-1] + n[-1]) + 1):
        low, high, live = max(1, diagonal - width), min(diagonal - 1, height), slice(ended[diagonal], None)
        if low <= high:
            shift, size = width - diagonal, high - low + 1
            cells, other, differ = now[low : high + 1, live], aside[:size, live], unequal[:size, live]
            np.add(last[low : high + 1, live], insertion, out=cells)
            np.add(last[low - 1 : high, live], deletion, out=other)
            np.minimum(cells, other, out=cells)
            np.not_equal(words[low - 1 : high, live], others[shift + low : shift + high + 1, live], out=differ)
            np.multiply(differ.view(np.uint8), substitution, out=other)
            np.add(other, before[low - 1 : high, live], out=other)
            np.minimum(cells, other, out=cells)
            np.bitwise_and(cells, keep, out=cells)
        if diagonal <= width:
            now[0] = border[diagonal]
        if diagonal <= height:
            now[diagonal] = border[diagonal]
        ending = np.arange(ended[diagonal], ended[diagonal + 1])
        final[ending] = now[m[ending], ending]
        before, last, now = last, now, before
    return (final >> dtype(bits + 2)).astype(np.int64), (final & dtype((1 << bits) - 1)).astype(np.int64)
