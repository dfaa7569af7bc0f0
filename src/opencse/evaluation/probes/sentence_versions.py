"""Probes of sentences and their versions: cosines (OssCSE §3.1), retrieval (DiffCSE Table 9), training pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from opencse.evaluation import TextEmbeddings
from opencse.evaluation.correlation import paired_cosine
from opencse.evaluation.neighbours import search
from opencse.evaluation.probes.estimates import Estimate, mean_estimate
from opencse.evaluation.probes.probe_data import ProbeSentences
from opencse.foundation.unit_rows import unit_rows
from opencse.text.surface import lexical_overlap, match_error_rate


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


TOP = 3


@dataclass(frozen=True, kw_only=True)
class RetrievedText:
    """A search result, whose relation to the query is `paraphrase`, `negation` or `other`."""

    text: str
    relation: str
    cosine: float


@dataclass(frozen=True, kw_only=True)
class Retrieval:
    """Nearest neighbours of each sentence among all sentences, paraphrases and negations.

    Attributes:
        paraphrase_first: Share of queries whose nearest text is their own paraphrase.
        negation_first: Share whose nearest text is their own negation.
        recall: Share whose paraphrase is among the first three (recall at 3).
        corpus: Number of distinct texts searched.
        queries: The queries.
        hits: The three nearest texts of each query, nearest first.
    """

    paraphrase_first: Estimate
    negation_first: Estimate
    recall: Estimate
    corpus: int
    queries: tuple[str, ...]
    hits: tuple[tuple[RetrievedText, ...], ...]


class RetrievalProbe:
    """Search for each sentence that has a paraphrase and a negation, among all such sentences and both versions.

    Args:
        sentences: The sentences.
    """

    def __init__(self, sentences: ProbeSentences) -> None:
        versions = [sentences.versions.get(kind, [None] * len(sentences)) for kind in ("paraphrase", "negation")]
        rows = [
            (a, p, n) for a, p, n in zip(sentences.anchors, *versions, strict=True) if p and n and len({a, p, n}) == 3
        ]
        self._rows = list({row[0]: row for row in rows}.values())  # a sentence that occurs twice is one query
        self._corpus = list(dict.fromkeys(text for row in self._rows for text in row))

    def texts(self) -> Iterator[str]:
        """Yield every text whose vector `measure` needs."""
        yield from self._corpus

    def measure(self, embeddings: TextEmbeddings) -> Retrieval:
        """Search the corpus with every query."""
        queries = [row[0] for row in self._rows]
        hits = list(self._search(queries, embeddings)) if queries else []
        first = [row[0].relation if row else "other" for row in hits]
        return Retrieval(
            paraphrase_first=_rate([relation == "paraphrase" for relation in first]),
            negation_first=_rate([relation == "negation" for relation in first]),
            recall=_rate([any(hit.relation == "paraphrase" for hit in row) for row in hits]),
            corpus=len(self._corpus),
            queries=tuple(queries),
            hits=tuple(hits),
        )

    def _search(self, queries: list[str], embeddings: TextEmbeddings) -> Iterator[tuple[RetrievedText, ...]]:
        corpus = unit_rows(embeddings(self._corpus), np.float64)
        position = {text: index for index, text in enumerate(self._corpus)}
        own = np.array([position[query] for query in queries])
        found = search(corpus[own], corpus, min(TOP, len(corpus) - 1), own)
        for (_, paraphrase, negation), indices, cosines in zip(self._rows, *found, strict=True):
            yield tuple(
                RetrievedText(
                    text=self._corpus[index],
                    relation={paraphrase: "paraphrase", negation: "negation"}.get(self._corpus[index], "other"),
                    cosine=round(float(cosine), 4),
                )
                for index, cosine in zip(indices, cosines, strict=True)
            )


def _rate(values: list[bool]) -> Estimate:
    return mean_estimate(np.array(values, dtype=np.float64), empty="no sentence has a paraphrase and a negation")


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
