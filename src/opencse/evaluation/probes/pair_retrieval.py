"""Retrieval among paraphrases and negations: which one ranks first? (after DiffCSE Table 9)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from opencse.evaluation import TextEmbeddings
from opencse.evaluation.neighbours import search
from opencse.evaluation.probes.estimates import Estimate, mean_estimate
from opencse.evaluation.probes.sentences import ProbeSentences
from opencse.foundation.unit_rows import unit_rows

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
