"""Retrieval (each query ranks a corpus) and reranking (each query ranks a few candidates) by cosine.

The metrics of a query follow trec_eval's definitions, from the ranks of the relevant items. Ties are ordered against
the model, the less relevant first, so that a model with constant scores does not profit from the order of a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opencse.evaluation.correlation import ROUNDING
from opencse.evaluation.task import TaskResult, TextEmbeddings, rows_sha256
from opencse.foundation.errors import OpencseError
from opencse.foundation.numbers import unit_rows


def relevant_ranks(scores: np.ndarray, relevance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ranks (from 1, ascending) and grades of the relevant items.

    Args:
        scores: Scores (n,), higher is better.
        relevance: Grades (n,); an item is relevant if its grade is above 0.

    Returns:
        Two vectors (r,), with r the number of relevant items.
    """
    scores, relevance = np.asarray(scores), np.asarray(relevance, dtype=np.float64)
    relevant = np.flatnonzero(relevance > 0)
    relevant = relevant[np.lexsort((relevance[relevant], -scores[relevant]))]
    others = np.sort(scores[relevance <= 0])
    above = len(others) - np.searchsorted(others, scores[relevant], side="left")
    return above + np.arange(1, len(relevant) + 1), relevance[relevant]


def measures(scores: np.ndarray, relevance: np.ndarray) -> dict[str, float]:
    """Return the measures of one query, in [0, 1]; trec_eval's names are in brackets.

    `map` and `map@10` (`map`, `map_cut_10`): average precision, whose mean over queries is MAP. `mrr` (`recip_rank`)
    and `mrr@10`: 1 / rank of the first relevant item. `recall@k` (`recall_k`): share of the relevant items among the
    first k. `ndcg@10` (`ndcg_cut_10`): normalised discounted cumulative gain, with linear gain.

    Args:
        scores: Scores (n,).
        relevance: Grades (n,), at least one above 0.
    """
    ranks, grades = relevant_ranks(scores, relevance)
    first, best, reciprocal = ranks <= 10, -np.sort(-grades)[:10], 1 / ranks[0]
    precision = np.arange(1, len(ranks) + 1) / ranks
    gain = (grades[first] / np.log2(ranks[first] + 1)).sum()
    found = {
        "ndcg@10": gain / (best / np.log2(np.arange(2, len(best) + 2))).sum(),
        "map": precision.mean(),
        "mrr": reciprocal,
        "map@10": (precision * first).mean(),
        "mrr@10": reciprocal if first[0] else 0.0,
        **{f"recall@{k}": (ranks <= k).mean() for k in (1, 5, 10)},
    }
    return {name: float(value) for name, value in found.items()}


_BLOCK = 256  # queries at a time: bounds the memory of the similarities


@dataclass(frozen=True, kw_only=True, eq=False)
class RetrievalTask:
    """Retrieval: each query ranks a corpus by cosine; or reranking: each ranks a few texts of it.

    Metrics, in percent, means over queries: `ndcg@10`, `map`, `mrr`, `map@10`, `mrr@10`, `recall@1`, `@5`, `@10`.

    Args:
        name: Name of the data set.
        queries: The query texts.
        corpus: The texts to search.
        relevant: For each query, grades (above 0) by position in the corpus.
        candidates: For each query, the positions of the texts that it ranks; None for all.
        others_only: Whether a text that equals the query is left out of its ranking.
        main: Main metric of the task.
        text: Text variant, as in `ScoredPairs`.

    Raises:
        OpencseError: There is no query, or a query has no relevant text.
    """

    name: str
    queries: Sequence[str]
    corpus: Sequence[str]
    relevant: Sequence[Mapping[int, float]]
    candidates: Sequence[Sequence[int]] | None = None
    others_only: bool = False
    main: str = "ndcg@10"
    text: str = "given"

    def __post_init__(self) -> None:
        if not self.queries:
            raise OpencseError(f"{self.name} holds no query", "Give at least one.")
        for query, grades in zip(self.queries, self.relevant, strict=True):
            if not any(grade > 0 for grade in grades.values()):
                problem = f"{self.name}: nothing is relevant to {query[:60]!r}"
                raise OpencseError(problem, "Drop the query, or judge its texts.")
        if self.others_only and len(set(self.corpus)) < len(self.corpus):
            raise OpencseError(f"{self.name}: a text occurs twice in the corpus", "Keep one of them.")

    def texts(self) -> Iterator[str]:
        """Yield queries and corpus."""
        yield from self.queries
        yield from self.corpus

    def score(self, embeddings: TextEmbeddings) -> TaskResult:
        """Search with every query, and return the metrics; undefined if the model gives all texts the same score."""
        found, spread = [], 0.0
        for cosine, relevance in (self._ranked if self.candidates is None else self._reranked)(embeddings):
            spread = max(spread, float(np.ptp(cosine)))
            found.append(measures(cosine, relevance))
        metrics: dict[str, float | None] = {
            key: 100 * float(np.mean([each[key] for each in found])) for key in found[0]
        }
        undefined = dict.fromkeys(metrics, "the model gives all texts the same score") if spread <= ROUNDING else {}
        rows = zip(self.queries, (sorted(each.items()) for each in self.relevant), strict=True)
        return TaskResult(
            task=self.name,
            main=self.main,
            metrics=metrics | dict.fromkeys(undefined),
            rows=len(found),
            data_sha256=rows_sha256([*rows, *self.corpus, *map(list, self.candidates or ())], end="\n"),
            undefined=undefined,
            details={"text": self.text, "corpus": len(self.corpus), "similarity": "cosine"},
        )

    def _ranked(self, embeddings: TextEmbeddings) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield cosines and grades of the texts of the corpus, for each query."""
        corpus = unit_rows(embeddings(self.corpus))
        position = {text: index for index, text in enumerate(self.corpus)}
        for start in range(0, len(self.queries), _BLOCK):
            block = self.queries[start : start + _BLOCK]
            for query, cosine, relevant in zip(
                block, unit_rows(embeddings(block)) @ corpus.T, self.relevant[start : start + _BLOCK], strict=True
            ):
                relevance = np.zeros(len(corpus))
                relevance[list(relevant)] = list(relevant.values())
                own = [position[query]] if self.others_only and query in position else []
                yield np.delete(cosine, own), np.delete(relevance, own)

    def _reranked(self, embeddings: TextEmbeddings) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield cosines and grades of the candidates of each query."""
        queries = unit_rows(embeddings(self.queries))
        for query, places, relevant in zip(queries, self.candidates or (), self.relevant, strict=True):
            cosine = unit_rows(embeddings([self.corpus[place] for place in places])) @ query
            yield cosine, np.array([relevant.get(place, 0.0) for place in places])
