"""Word alignment of many pairs of sentences at once, and edit distances between pools of them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np

from opencse.foundation.errors import OpencseError


@dataclass(frozen=True, kw_only=True)
class Symbols:
    """The words or characters of n texts, text after text.

    Attributes:
        keys: int64; equal words or characters have equal keys, and different ones differ but for a chance of 2^-64.
        offsets: int64 (n + 1,); the keys of text i are `keys[offsets[i]:offsets[i + 1]]`.
    """

    keys: np.ndarray
    offsets: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """Number of words or characters of each text, int64 (n,)."""
        return np.diff(self.offsets)


def symbols(texts: Sequence[str], *, unit: Literal["word", "character"] = "word", lower: bool = True) -> Symbols:
    """Return the keys of the words (those of `str.split()`) or characters (code points) of texts.

    Args:
        texts: n texts.
        unit: Unit of an edit.
        lower: Ignore case.
    """
    folded = [text.lower() if lower else text for text in texts]
    cut: Sequence[Sequence[str]] = [text.split() for text in folded] if unit == "word" else folded
    keys = np.fromiter(map(hash, chain.from_iterable(cut)), dtype=np.int64)
    return Symbols(keys=keys, offsets=np.concatenate(([0], np.cumsum([len(one) for one in cut], dtype=np.int64))))


def pool_distance(texts: Symbols, anchors: np.ndarray, pools: np.ndarray) -> np.ndarray:
    """Return the edit distance of each anchor to every text of its pool (DebCSE, Eq. 1).

    Args:
        texts: Symbols of all texts.
        anchors: Indices of texts, int64 (a,).
        pools: Indices of texts, int64 (a, n); negative if a pool has fewer than n members.

    Returns:
        int32 (a, n); 0 without a member.
    """
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    words, ids = np.unique(texts.keys, return_inverse=True)
    # rapidfuzz compares strings fastest: each word becomes a character, unless there are more words than characters.
    whole: list[int] | str = ids.tolist()
    if len(words) <= sys.maxunicode:
        whole = ids.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    cut = [
        whole[start:stop] for start, stop in zip(texts.offsets[:-1].tolist(), texts.offsets[1:].tolist(), strict=True)
    ]
    out = np.zeros(pools.shape, dtype=np.int32)
    for anchor, members, distances in zip(anchors.tolist(), pools, out, strict=True):
        valid = members >= 0
        pool = [cut[member] for member in members[valid].tolist()]
        distances[valid] = cdist([cut[anchor]], pool, scorer=Levenshtein.distance, dtype=np.int32, workers=1)[0]
    return out


_PIECE = 1 << 14  # pairs whose words are in memory at a time
_CELLS = 1 << 14  # cells in a row of all pairs of a batch: its arrays fit in a core's cache


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


def align(references: Sequence[str], hypotheses: Sequence[str], *, lower: bool = True) -> Alignment:
    """Align the words of each hypothesis with those of its reference.

    Words are those of `str.split()`, lower-cased unless `lower` is false. OssCSE does so too: SentEval lower-cases its
    sentences.

    Args:
        references: n texts.
        hypotheses: n texts.
        lower: Ignore case.

    Raises:
        ValueError: The numbers of references and hypotheses differ.
    """
    check_columns(references, hypotheses)
    m, n, distance, substitutions = counts = np.zeros((4, len(references)), dtype=np.int64)
    for start in range(0, len(references), _PIECE):
        piece = slice(start, start + _PIECE)
        left, right = symbols(references[piece], lower=lower), symbols(hypotheses[piece], lower=lower)
        counts[:2, piece] = left.lengths, right.lengths
        order = np.lexsort((-left.lengths, -right.lengths))
        while len(order):
            pairs = order[: max(1, _CELLS // (right.lengths[order[0]] + 1))]
            counts[2:, start + pairs] = _last_cells(_padded(left, pairs), _padded(right, pairs))
            order = order[len(pairs) :]
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


def _padded(texts: Symbols, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the keys of some texts, (p, longest), and their numbers of words, (p,)."""
    lengths = texts.lengths[rows]
    valid = np.arange(lengths.max()) < lengths[:, None]
    keys = np.zeros(valid.shape, dtype=np.int64)
    keys[valid] = texts.keys[(texts.offsets[rows][:, None] + np.arange(valid.shape[1]))[valid]]
    return keys, lengths


def _last_cells(
    references: tuple[np.ndarray, np.ndarray], hypotheses: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Run the dynamic programme of p pairs row by row; return distances and substitutions, each (p,).

    Within a row, a cell that is reached by insertions takes its substitutions from the last cell to its left that is
    reached from the row above.
    """
    (a, m), (b, n) = references, hypotheses
    order = np.argsort(-m, kind="stable")  # so that the pairs with another word come first
    a, m, b, n = a[order], m[order], b[order], n[order]
    bits = 16 if b.shape[1] < 1 << 15 else 32  # of a number of substitutions, which has its column before it
    columns = np.arange(b.shape[1] + 1, dtype=np.int32 if bits == 16 else np.int64)
    errors = np.tile(columns, (len(m), 1))
    substitutions = np.zeros_like(errors)
    for i in range(a.shape[1]):
        active = np.searchsorted(-m, -i)
        e, s = errors[:active], substitutions[:active]
        differ = b[:active] != a[:active, i, None]
        diagonal, above = e[:, :-1] + differ, e[:, 1:] + 1
        aligned = diagonal <= above  # a match or a substitution, rather than a deletion
        count = np.where(aligned, s[:, :-1] + differ, s[:, 1:])
        excess = np.minimum(diagonal, above) - columns[1:]  # an insertion keeps the excess of errors over columns
        e[:, 0] = i + 1
        e[:, 1:] = excess
        np.minimum.accumulate(e, axis=1, out=e)
        own = excess < e[:, :-1] + aligned  # a deletion only if it is better than an insertion
        s[:, 1:] = np.where(own, columns[1:] << bits | count, 0)
        np.maximum.accumulate(s, axis=1, out=s)
        s &= (1 << bits) - 1
        e += columns
    last = np.empty((2, len(m)), dtype=np.int64)
    last[:, order] = errors[np.arange(len(m)), n], substitutions[np.arange(len(m)), n]
    return last[0], last[1]
