"""Cosines of sentences with six transformations of them (OssCSE §3.1 and 3.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from opencse.evaluation import TextEmbeddings
from opencse.evaluation.correlation import paired_cosine
from opencse.evaluation.probes.estimates import Estimate, mean_estimate
from opencse.evaluation.probes.sentences import ProbeSentences
from opencse.text.surface import match_error_rate


@dataclass(frozen=True, kw_only=True)
class TransformationCosines:
    """Cosines of all sentences with one transformation.

    Attributes:
        kind: Name of the transformation.
        cosine: Mean cosine of sentence and transformation, with a bootstrap interval over sentences.
        error_rate: Mean match error rate, the share of words that changed.
        cosines: Each cosine, in the order of `error_rates`.
        error_rates: Each match error rate.
    """

    kind: str
    cosine: Estimate
    error_rate: float
    cosines: tuple[float, ...]
    error_rates: tuple[float, ...]


@dataclass(frozen=True, kw_only=True)
class Transformations:
    """Mean cosines of one model between sentences and their transformations.

    Attributes:
        kinds: The transformations that the sentences have.
        paraphrase_above_negation: Share of sentences whose paraphrase is closer than their negation; a tie does not
            count as above.
        ties: Sentences for which both are equally close.
        rows_above: For each sentence with both, in order: whether the paraphrase is above.
    """

    kinds: tuple[TransformationCosines, ...]
    paraphrase_above_negation: Estimate
    ties: int
    rows_above: tuple[bool, ...]


class TransformationProbe:
    """Cosines of sentences with their transformations.

    Args:
        sentences: The sentences.
    """

    def __init__(self, sentences: ProbeSentences) -> None:
        self.sentences = sentences
        self._pairs = {kind: sentences.pairs(kind) for kind in sentences.kinds}
        self._rates = {kind: match_error_rate(a, b) for kind, (_, a, b) in self._pairs.items()}

    def texts(self) -> Iterator[str]:
        """Yield every text whose vector `measure` needs."""
        for _, first, second in self._pairs.values():
            yield from first
            yield from second

    def measure(self, embeddings: TextEmbeddings) -> Transformations:
        """Return the cosines by transformation."""
        cosines = {kind: paired_cosine(embeddings(a), embeddings(b)) for kind, (_, a, b) in self._pairs.items()}
        margin = self._margin(cosines)
        return Transformations(
            kinds=tuple(self._kind(kind, values) for kind, values in cosines.items()),
            paraphrase_above_negation=mean_estimate(margin > 0, empty="no sentence has a paraphrase and a negation"),
            ties=int((margin == 0).sum()),
            rows_above=tuple((margin > 0).tolist()),
        )

    def _kind(self, kind: str, cosines: np.ndarray) -> TransformationCosines:
        return TransformationCosines(
            kind=kind,
            cosine=mean_estimate(cosines),
            error_rate=float(self._rates[kind].mean()),
            cosines=tuple(cosines.round(4).tolist()),
            error_rates=tuple(self._rates[kind].round(4).tolist()),
        )

    def _margin(self, cosines: dict[str, np.ndarray]) -> np.ndarray:
        """Return the cosine of the paraphrase minus that of the negation, for sentences that have both."""
        if "paraphrase" not in cosines or "negation" not in cosines:
            return np.zeros(0)
        rows, first, second = np.intersect1d(
            self._pairs["paraphrase"][0], self._pairs["negation"][0], return_indices=True
        )
        return cosines["paraphrase"][first] - cosines["negation"][second] if len(rows) else np.zeros(0)
