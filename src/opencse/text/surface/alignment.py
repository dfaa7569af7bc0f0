"""Word alignment of many pairs of texts: the numbers of substituted, deleted, inserted and correct words.

The counts depend on the choice among the shortest alignments. Here the back-trace, from the last words to the first,
prefers match, then substitution, then insertion, then deletion, which reproduces the medians and counts of OssCSE
(Table 2). rapidfuzz and jiwer choose differently, so the dynamic programme is implemented here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from opencse.foundation.errors import OpencseError
from opencse.text.surface.words import character_classes, joined, plain

_PIECE = 1 << 10  # pairs in one job of a thread


@dataclass(frozen=True, kw_only=True)
class Alignment:
    """Counts of words for n pairs, each int64 (n,).

    Attributes:
        substitutions: S, aligned words that differ.
        deletions: D, words of the reference without a counterpart.
        insertions: I, words of the hypothesis without a counterpart.
        correct: C, aligned words that are equal.
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
        """(S + D + I) / (S + D + I + C) (OssCSE, Eq. 1), float64 (n,); 0 for two empty texts."""
        total = self.errors + self.correct
        return np.divide(self.errors, total, out=np.zeros(len(total)), where=total > 0)


def align(
    references: Sequence[str], hypotheses: Sequence[str], *, lower: bool = True, workers: int | None = None
) -> Alignment:
    """Align the words of each hypothesis with those of its reference.

    Words are those of `str.split()`, lower-cased unless `lower` is false. OssCSE does so too: SentEval lower-cases its
    sentences.

    Args:
        references: n texts.
        hypotheses: n texts.
        lower: Ignore case.
        workers: Number of threads; None for one per core.

    Raises:
        ValueError: The numbers of references and hypotheses differ.
    """
    from opencse.text.surface.alignment_kernel import align_texts  # loads numba, which not every command needs

    counts = np.empty((len(references), 4), dtype=np.int64)
    over_pieces(align_texts, references, hypotheses, counts, lower=lower, workers=workers)
    m, n, distance, substitutions = counts.T
    correct = (m + n - distance - substitutions) // 2  # from S + D + C = m, S + I + C = n, S + D + I = distance
    return Alignment(
        substitutions=substitutions,
        deletions=m - substitutions - correct,
        insertions=n - substitutions - correct,
        correct=correct,
    )


def check_columns(references: Sequence[str], hypotheses: Sequence[str]) -> None:
    """Raise an error for single texts, which would be compared letter by letter, and for lists of different lengths.

    Raises:
        OpencseError: One argument is a string, not a sequence of strings.
        ValueError: The lengths differ.
    """
    if isinstance(references, str) or isinstance(hypotheses, str):
        raise OpencseError("expected two lists of texts, not a single text", "Put each text into a list.")
    if len(references) != len(hypotheses):
        raise ValueError(f"{len(references)} references, but {len(hypotheses)} hypotheses")


def over_pieces(
    kernel: Callable[..., int],
    references: Sequence[str],
    hypotheses: Sequence[str],
    out: np.ndarray,
    *,
    lower: bool,
    workers: int | None,
) -> None:
    """Fill `out`, one row per pair, by a function of `opencse.text.surface.alignment_kernel`, on several threads."""
    check_columns(references, hypotheses)

    def run(start: int) -> None:
        piece = slice(start, start + _PIECE)
        _fill(kernel, references[piece], hypotheses[piece], lower, out[piece])

    starts = range(0, len(references), _PIECE)
    workers = min(workers or os.cpu_count() or 1, len(starts))
    if workers < 2:
        for start in starts:
            run(start)
    else:
        with ThreadPoolExecutor(workers) as pool:  # compiled code releases the GIL
            list(pool.map(run, starts))


def _fill(kernel: Callable[..., int], a: Sequence[str], b: Sequence[str], lower: bool, out: np.ndarray) -> None:
    """Run the kernel, and again on plain texts for the pairs that it marks as odd (all if there are line breaks)."""
    (left, size), (right, other_size) = joined(a), joined(b)
    odd = np.zeros(len(a), dtype=np.bool_)
    done = kernel(left, right, character_classes(), lower, out, odd) == size + other_size
    again = np.flatnonzero(odd) if done else np.arange(len(a))
    if len(again):
        sides = (joined([plain(side[i], lower=lower) for i in again.tolist()])[0] for side in (a, b))
        part = np.empty((len(again), *out.shape[1:]), dtype=out.dtype)
        kernel(*sides, character_classes(), lower, part, odd)
        out[again] = part
