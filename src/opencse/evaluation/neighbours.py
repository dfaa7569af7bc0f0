"""Nearest neighbours: texts of one topic, and searches whose first hit is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from opencse.evaluation.task import TaskResult, TextEmbeddings, rows_sha256
from opencse.foundation.errors import OpencseError
from opencse.foundation.numbers import unit_rows

_BLOCK = 512  # queries at a time: bounds the memory of the similarities
_TOP = 10


@dataclass(frozen=True, kw_only=True, eq=False)
class NeighbourTask:
    """`precision@10`, in percent: the share of the ten nearest other texts, by cosine, that have the label of the text.

    Args:
        name: Name of the data set.
        items: n distinct texts.
        labels: Their n labels.

    Raises:
        OpencseError: A text occurs twice, or there are no more than ten texts.
    """

    name: str
    items: Sequence[str]
    labels: Sequence[str]

    def __post_init__(self) -> None:
        if len(set(self.items)) < len(self.items):
            raise OpencseError(f"{self.name}: a text occurs twice", "Keep one of them.")
        if len(self.items) <= _TOP:
            raise OpencseError(f"{self.name}: {len(self.items)} texts for {_TOP} neighbours", "Give more texts.")

    def texts(self) -> Iterator[str]:
        """Yield the texts."""
        yield from self.items

    def score(self, embeddings: TextEmbeddings) -> TaskResult:
        """Compare the labels of every text and of its neighbours."""
        names, labels = np.unique(np.array(self.labels), return_inverse=True)
        unit = unit_rows(embeddings(self.items))
        nearest, _ = search(unit, unit, _TOP, np.arange(len(unit)))
        own = labels[nearest] == labels[:, None]
        return TaskResult(
            task=self.name,
            main=f"precision@{_TOP}",
            metrics={f"precision@{_TOP}": 100 * float(own.mean())},
            rows=len(labels),
            data_sha256=rows_sha256([[list(self.items), list(self.labels), _TOP]]),
            details={"text": "given", "labels": len(names), "similarity": "cosine"},
        )


class KeptHitsTask:
    """Searches whose first hit by an untouched model is still among the first hits of a changed one: needs no labels.

    The first model that is scored is the untouched one; it scores 100. Metrics of the others, in percent: `kept@10`
    (the main one) and `kept@1`, the shares of the searches whose first hit by the untouched model is one of the ten
    nearest texts by cosine, and the nearest. Ten, because a contradiction that was found first should fall behind.

    Args:
        name: Name of the task.
        queries: q distinct searches.
        documents: n distinct texts that are searched.

    Raises:
        OpencseError: There is no search, or there are no more than ten texts.
    """

    def __init__(self, name: str, queries: Sequence[str], documents: Sequence[str]) -> None:
        if not queries:
            raise OpencseError(f"{name}: no search", "Give at least one, one per line.")
        if len(documents) <= _TOP:
            raise OpencseError(f"{name}: {len(documents)} texts to search", f"Give more than {_TOP}.")
        self.name, self._queries, self._documents = name, queries, documents
        self._first: np.ndarray | None = None

    def texts(self) -> Iterator[str]:
        """Yield searches and documents."""
        yield from self._queries
        yield from self._documents

    def score(self, embeddings: TextEmbeddings) -> TaskResult:
        """Search with every query; cost is O(q n d)."""
        documents = unit_rows(embeddings(self._documents))
        hits, _ = search(unit_rows(embeddings(self._queries)), documents, _TOP)
        if self._first is None:
            self._first = hits[:, 0]
        found = hits == self._first[:, None]
        return TaskResult(
            task=self.name,
            main=f"kept@{_TOP}",
            metrics={f"kept@{_TOP}": 100 * float(found.any(axis=1).mean()), "kept@1": 100 * float(found[:, 0].mean())},
            rows=len(found),
            data_sha256=rows_sha256([[list(self._queries), list(self._documents)]]),
            details={"text": "given", "corpus": len(self._documents), "similarity": "cosine"},
        )


def search(
    queries: np.ndarray, index: np.ndarray, k: int, own: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest of some unit vectors for each query, in descending order; of ties, the first comes first.

    Args:
        queries: Unit vectors (q, d).
        index: The unit vectors to search, (n, d).
        k: Number of hits.
        own: The row of the index that each query doesn't find, (q,).

    Returns:
        Row numbers (q, k) and their cosines (q, k).
    """
    rows, cosines = [], []
    for start in range(0, len(queries), _BLOCK):
        similarities = queries[start : start + _BLOCK] @ index.T
        if own is not None:
            similarities[np.arange(len(similarities)), own[start : start + _BLOCK]] = -np.inf
        rows.append(np.argsort(-similarities, axis=1, kind="stable")[:, :k])
        cosines.append(np.take_along_axis(similarities, rows[-1], axis=1))
    return np.concatenate(rows), np.concatenate(cosines)
