"""Surface similarity of two columns of texts, each measure float64 (n,)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

import numpy as np

from opencse.surface.alignment import align, check_columns, over_pieces


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
    check_columns(references, hypotheses)
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


def lexical_overlap(
    references: Sequence[str], hypotheses: Sequence[str], *, lower: bool = True, workers: int | None = None
) -> np.ndarray:
    """Return the number of shared words over the longer length (DebCSE Tables 1 and 4); 1 for two empty texts.

    A word that occurs twice in both texts is shared twice, so that a text overlaps itself wholly.
    """
    from opencse.surface.kernel import overlap_texts

    check_columns(references, hypotheses)
    shares = np.empty(len(references))
    over_pieces(overlap_texts, references, hypotheses, shares, lower=lower, workers=workers)
    return shares
