"""Surface similarity of two columns of texts, each measure float64 (n,)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

import numpy as np

from opencse.surface.alignment import align
from opencse.surface.words import split_words


def match_error_rate(
    references: Sequence[str], hypotheses: Sequence[str], *, lower: bool = True, workers: int | None = None
) -> np.ndarray:
    """Return (S + D + I) / (S + D + I + C) of each pair (OssCSE eq. 1): 0 for equal words, 1 for none in common.

    See `align` for what a word is, and for which alignment is taken.
    """
    return align(references, hypotheses, lower=lower, workers=workers).match_error_rate


def edit_distance(
    references: Sequence[str],
    hypotheses: Sequence[str],
    *,
    unit: Literal["word", "character"] = "word",
    normalised: bool = True,
    lower: bool = True,
    workers: int | None = None,
) -> np.ndarray:
    """Return the Levenshtein distance of each pair, over the longer length if `normalised` (0 for two empty texts).

    Args:
        references: n texts.
        hypotheses: n texts.
        unit: Count edits of white-space words, or of characters (code points).
        normalised: Divide by the longer length.
        lower: Compare without regard to case.
        workers: Threads; None for one per core.
    """
    if len(references) != len(hypotheses):
        raise ValueError(f"{len(references)} references, but {len(hypotheses)} hypotheses")
    if unit == "word":
        result = align(references, hypotheses, lower=lower, workers=workers)
        length = result.correct + result.substitutions + np.maximum(result.deletions, result.insertions)
        errors = result.errors.astype(np.float64)
        return np.divide(errors, length, out=np.zeros(len(length)), where=length > 0) if normalised else errors
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cpdist

    a, b = ([text.lower() for text in side] if lower else list(side) for side in (references, hypotheses))
    scorer = Levenshtein.normalized_distance if normalised else Levenshtein.distance
    return cpdist(a, b, scorer=scorer, dtype=np.float64, workers=workers or os.cpu_count() or 1)


def lexical_overlap(references: Sequence[str], hypotheses: Sequence[str], *, lower: bool = True) -> np.ndarray:
    """Return the number of shared words over the longer length (DebCSE Tables 1 and 4); 1 for two empty texts.

    A word that occurs twice in both texts is shared twice, so that a text overlaps itself wholly.
    """
    count = len(references)
    if len(hypotheses) != count:
        raise ValueError(f"{count} references, but {len(hypotheses)} hypotheses")
    a, b = split_words(references, lower=lower), split_words(hypotheses, lower=lower)
    row = np.concatenate([np.repeat(np.arange(count), column.lengths) for column in (a, b)])
    key = np.concatenate([a.keys, b.keys])
    order = np.lexsort((key, row))
    row, key, side = row[order], key[order], (order >= len(a.keys)).astype(np.int64)
    first = np.flatnonzero(np.concatenate(([True], (np.diff(row) != 0) | (np.diff(key) != 0)))[: len(row)])
    if not len(first):
        return np.ones(count)
    total = np.diff(np.append(first, len(row)))
    in_b = np.add.reduceat(side, first)
    shared = np.bincount(row[first], weights=np.minimum(in_b, total - in_b), minlength=count)
    longer = np.maximum(a.lengths, b.lengths)
    return np.divide(shared, longer, out=np.ones(count), where=longer > 0)
