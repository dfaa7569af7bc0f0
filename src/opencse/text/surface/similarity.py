"""Surface similarity of n pairs of texts; each measure is float64 (n,)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opencse.text.surface.alignment import align, check_columns


def match_error_rate(references: Sequence[str], hypotheses: Sequence[str]) -> np.ndarray:
    """Return the match error rate of each pair, (S + D + I) / (S + D + I + C): 0 for equal words, 1 for none in common.

    Source: Morris et al. (Interspeech 2004); OssCSE, Eq. 1. Words and alignment are those of `align`.

    Args:
        references: n texts.
        hypotheses: n texts.

    Returns:
        float64 (n,).

    Example:
        >>> match_error_rate(["the road is safe"], ["the road is not safe"])
        array([0.2])
    """
    return align(references, hypotheses).match_error_rate


def lexical_overlap(references: Sequence[str], hypotheses: Sequence[str]) -> np.ndarray:
    """Return the number of shared words divided by the longer length (DebCSE, Tables 1 and 4); 1 for two empty texts.

    A word that occurs twice in both texts counts twice, so the overlap of a text with itself is 1.

    Args:
        references: n texts.
        hypotheses: n texts.

    Returns:
        float64 (n,).
    """
    check_columns(references, hypotheses)
    shares = np.ones(len(references))
    for i, texts in enumerate(zip(references, hypotheses, strict=True)):
        a, b = (text.lower().split() for text in texts)
        if a or b:
            shares[i] = (Counter(a) & Counter(b)).total() / max(len(a), len(b))
    return shares


@dataclass(frozen=True, kw_only=True)
class Split:
    """The split of one data set.

    Attributes:
        consistent: Mask of the consistent pairs, bool (n,); all others are opposed.
        median_score: Median of the human scores.
        median_error_rate: Median of the match error rates.
    """

    consistent: np.ndarray
    median_score: float
    median_error_rate: float

    @property
    def balanced(self) -> bool:
        """Whether the median score lies in [2, 3.5]; OssCSE leaves out other sets (footnote 3)."""
        return 2.0 <= self.median_score <= 3.5


def consistency_opposition(sentences1: Sequence[str], sentences2: Sequence[str], scores: Sequence[float]) -> Split:
    """Split pairs by the medians of their data set, as in OssCSE, Table 2.

    A pair is consistent if its human score is above the median and its match error rate below, or the reverse. All
    other pairs are opposed, including ties with either median, which reproduces the published counts.

    Args:
        sentences1: n texts; OssCSE's counts need SentEval's texts (tokenised, lower-cased).
        sentences2: n texts.
        scores: n human similarity scores.
    """
    score = np.asarray(scores, dtype=np.float64)
    rate = match_error_rate(sentences1, sentences2)
    if not len(score):
        return Split(consistent=np.zeros(0, dtype=bool), median_score=float("nan"), median_error_rate=float("nan"))
    middle, middle_rate = float(np.median(score)), float(np.median(rate))
    consistent = ((score > middle) & (rate < middle_rate)) | ((score < middle) & (rate > middle_rate))
    return Split(consistent=consistent, median_score=middle, median_error_rate=middle_rate)
