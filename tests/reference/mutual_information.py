"""Literal transcription of IS-BERT's loss, one pair of a token and a sentence at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np


def mutual_information(tokens: np.ndarray, rows: Sequence[int], sentences: np.ndarray) -> float:
    """The negative Jensen-Shannon estimate of tokens (T, d), each of the sentence (N, d) in `rows`."""

    def softplus(x: float) -> float:
        return math.log1p(math.exp(x))

    positive, negative = 0.0, 0.0
    for token, row in zip(tokens, rows, strict=True):
        for j, sentence in enumerate(sentences):
            score = float(token @ sentence)
            if j == row:
                positive += math.log(2) - softplus(-score)
            else:
                negative += softplus(-score) + score - math.log(2)
    count, others = len(tokens), len(sentences) - 1
    return negative / (count * others) - positive / count
