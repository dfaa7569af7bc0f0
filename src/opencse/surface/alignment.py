"""Word alignment: how many words of a hypothesis are substituted, deleted, inserted or correct, for columns of pairs.

The counts depend on which of the shortest alignments is taken. Here the back-trace, from the last words to the first,
prefers match, then substitution, then insertion, then deletion: the order under which the medians and the counts of
OssCSE (Table 2) come out. rapidfuzz and jiwer prefer otherwise, so the dynamic programme is run here: all pairs of a
block at once, one anti-diagonal after another, each cell packing (distance, choice, substitutions) into one integer so
that the smallest candidate is the preferred one.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from opencse.surface.words import WordColumn, split_words

_CHUNK = 65536  # pairs that one thread takes at a time
_BLOCK = 1 << 15  # cells on the longest anti-diagonal of one block: a few of them stay in a core's cache
_BLOCKS = 4  # that are cut at a time


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

    def one(start: int) -> tuple[np.ndarray, ...]:
        part = slice(start, start + _CHUNK)
        reference, hypothesis = split_words(references[part], lower=lower), split_words(hypotheses[part], lower=lower)
        return reference.lengths, hypothesis.lengths, *_distance_and_substitutions(reference, hypothesis)

    parts = list(_threaded(one, range(0, len(references), _CHUNK), workers))
    if not parts:
        none = np.zeros(0, dtype=np.int64)
        return Alignment(substitutions=none, deletions=none, insertions=none, correct=none)
    m, n, distance, substitutions = (np.concatenate(column) for column in zip(*parts, strict=True))
    correct = (m + n - distance - substitutions) // 2  # from S + D + C = m, S + I + C = n, S + D + I = distance
    return Alignment(
        substitutions=substitutions,
        deletions=m - substitutions - correct,
        insertions=n - substitutions - correct,
        correct=correct,
    )


def _threaded(function: object, items: Sequence[int], workers: int | None) -> Iterator[tuple[np.ndarray, ...]]:
    """Map in order, on threads: Arrow and NumPy let go of the interpreter lock."""
    workers = min(workers or os.cpu_count() or 1, len(items))
    if workers <= 1:
        yield from map(function, items)  # type: ignore[call-overload]
        return
    with ThreadPoolExecutor(workers) as pool:
        yield from pool.map(function, items)  # type: ignore[arg-type]


def _distance_and_substitutions(reference: WordColumn, hypothesis: WordColumn) -> tuple[np.ndarray, np.ndarray]:
    """Edit distance and substitutions of each pair, both int64 (n,)."""
    a, b, m, n = _trimmed(reference, hypothesis)
    distance, substitutions = np.maximum(m, n), np.zeros(len(m), dtype=np.int64)  # right where a side is empty
    for rows in _blocks(m, n):
        words = (reference.keys, hypothesis.keys, a[rows], b[rows])
        distance[rows], substitutions[rows] = _block(*words, m[rows], n[rows])
    return distance, substitutions


def _trimmed(reference: WordColumn, hypothesis: WordColumn) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """First word (of all keys) and number of words of each text, without the words that a pair begins or ends with.

    This changes neither the distance nor the substitutions. At the end the back-trace takes the matches first anyway.
    Removing a common beginning of k words keeps the distance of every cell (i, j) with i, j >= k, hence each choice
    there, up to the first cell with i = k or j = k; from that one, every shortest way on has no substitution, as its
    distance is |i - j|.
    """
    a, b = reference.offsets[:-1].copy(), hypothesis.offsets[:-1].copy()
    m, n = reference.lengths, hypothesis.lengths
    for last in (True, False):
        rows = np.flatnonzero(np.minimum(m, n) > 0)
        while len(rows):
            i, j = a[rows], b[rows]
            if last:
                i, j = i + m[rows] - 1, j + n[rows] - 1
            rows = rows[reference.keys[i] == hypothesis.keys[j]]
            m[rows] -= 1
            n[rows] -= 1
            if not last:
                a[rows] += 1
                b[rows] += 1
            rows = rows[np.minimum(m[rows], n[rows]) > 0]
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
    dtype = next(t for t in (np.uint16, np.uint32, np.uint64) if 2 * bits + 2 <= 8 * np.dtype(t).itemsize)
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
