"""Surface similarity of n pairs of texts; each measure is float64 (n,)."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal

import numpy as np

from opencse.text.surface.alignment import align, check_columns, over_pieces


def match_error_rate(
    references: Sequence[str], hypotheses: Sequence[str], *, lower: bool = True, workers: int | None = None
) -> np.ndarray:
    """Return the match error rate of each pair, (S + D + I) / (S + D + I + C): 0 for equal words, 1 for none in common.

    Source: Morris et al. (Interspeech 2004); OssCSE, Eq. 1. Words and alignment are those of `align`.

    Args:
        references: n texts.
        hypotheses: n texts.
        lower: Ignore case.
        workers: Number of threads; None for one per core.

    Returns:
        float64 (n,).

    Example:
        >>> match_error_rate(["the road is safe"], ["the road is not safe"])
        array([0.2])
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
    """Return the Levenshtein distance of each pair, divided by the longer length if `normalised`.

    Args:
        references: n texts.
        hypotheses: n texts.
        unit: Unit of an edit: words between white space, or characters (code points).
        normalised: Divide by the longer length; 0 for two empty texts.
        lower: Ignore case.
        workers: Number of threads; None for one per core.

    Returns:
        float64 (n,).
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
    """Return the number of shared words divided by the longer length (DebCSE, Tables 1 and 4); 1 for two empty texts.

    A word that occurs twice in both texts counts twice, so the overlap of a text with itself is 1.

    Args:
        references: n texts.
        hypotheses: n texts.
        lower: Ignore case.
        workers: Number of threads; None for one per core.

    Returns:
        float64 (n,).
    """
    from opencse.text.surface.alignment_kernel import overlap_texts

    check_columns(references, hypotheses)
    shares = np.empty(len(references))
    over_pieces(overlap_texts, references, hypotheses, shares, lower=lower, workers=workers)
    return shares
