"""Lexical overlap and cosine of training pairs (DebCSE Figures 1 and 4, Tables 1 and 4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from opencse.evaluation import TextEmbeddings
from opencse.evaluation.correlation import paired_cosine
from opencse.evaluation.probes.estimates import Estimate, mean_estimate
from opencse.evaluation.probes.sentences import ProbeSentences
from opencse.text.surface import lexical_overlap

HISTOGRAM = tuple(np.linspace(0, 1, 21).round(2).tolist())
"""Edges of the histograms; cosines below 0 are counted in the first bin."""

_NEGATIVE = ("negation", "negative", "random")
_PROBES = ("insertion", "deletion", "substitution")


@dataclass(frozen=True, kw_only=True)
class PairKind:
    """Pairs of each sentence with one of its versions.

    Attributes:
        column: The version; `another sentence` for sentences drawn at random, as in-batch negatives are.
        role: `positive` or `negative` in training.
        overlap: Mean lexical overlap.
        cosine: Mean cosine.
        overlap_counts: Histogram of the lexical overlap, with the bins of `HISTOGRAM`.
        cosine_counts: Histogram of the cosine.
    """

    column: str
    role: str
    overlap: Estimate
    cosine: Estimate
    overlap_counts: tuple[int, ...]
    cosine_counts: tuple[int, ...]


class TrainingPairsProbe:
    """Overlap and cosine of the training pairs in a file of views.

    A `paraphrase` or a `positive` is a positive; a `negation`, a `negative`, the `substitution` that SAN builds and
    another sentence of the file are negatives. OssCSE's insertion, deletion and substitution are probes, not training
    views.

    Args:
        sentences: The views.
    """

    def __init__(self, sentences: ProbeSentences) -> None:
        columns = [c for c in sentences.versions if c not in _PROBES]
        self._pairs = {column: sentences.pairs(column)[1:] for column in columns}
        self._overlap = {column: lexical_overlap(a, b) for column, (a, b) in self._pairs.items()}

    def texts(self) -> Iterator[str]:
        """Yield every text whose vector `measure` needs."""
        for first, second in self._pairs.values():
            yield from first
            yield from second

    def measure(self, embeddings: TextEmbeddings) -> tuple[PairKind, ...]:
        """Return overlap and cosine of every kind of pair."""
        return tuple(self._kind(column, embeddings) for column in self._pairs)

    def _kind(self, column: str, embeddings: TextEmbeddings) -> PairKind:
        first, second = self._pairs[column]
        cosine, overlap = paired_cosine(embeddings(first), embeddings(second)), self._overlap[column]
        return PairKind(
            column="another sentence" if column == "random" else column,
            role="negative" if column.partition(".")[0] in _NEGATIVE else "positive",
            overlap=mean_estimate(overlap),
            cosine=mean_estimate(cosine),
            overlap_counts=_counts(overlap),
            cosine_counts=_counts(cosine),
        )


def _counts(values: np.ndarray) -> tuple[int, ...]:
    return tuple(np.histogram(np.clip(values, HISTOGRAM[0], HISTOGRAM[-1]), HISTOGRAM)[0].tolist())
