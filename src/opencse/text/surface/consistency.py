"""Split of scored pairs by whether surface similarity agrees with meaning: consistency and opposition (OssCSE §3.3)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opencse.text.surface.measures import match_error_rate


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
