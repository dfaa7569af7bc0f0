"""A guard without labels: the first hits of a search before a change are still found after it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence

import numpy as np

from opencse.evaluation.task import TaskResult, TextEmbeddings, unit_rows
from opencse.foundation.errors import OpencseError

_BLOCK = 256  # searches at a time: bounds the memory of the similarities
_TOP = 10


class KeptHitsTask:
    """Searches whose first hit by an untouched model is still among the first hits of a changed one.

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
        nearest = self._nearest(embeddings)
        if self._first is None:
            self._first = nearest[:, 0]
        found = nearest == self._first[:, None]
        return TaskResult(
            task=self.name,
            main=f"kept@{_TOP}",
            metrics={f"kept@{_TOP}": 100 * float(found.any(axis=1).mean()), "kept@1": 100 * float(found[:, 0].mean())},
            rows=len(found),
            data_sha256=hashlib.sha256(json.dumps([list(self._queries), list(self._documents)]).encode()).hexdigest(),
            details={"text": "given", "corpus": len(self._documents), "similarity": "cosine"},
        )

    def _nearest(self, embeddings: TextEmbeddings) -> np.ndarray:
        """Return the positions of the nearest documents of each search, (q, 10), the nearest first."""
        documents = unit_rows(embeddings(self._documents))
        found = []
        for start in range(0, len(self._queries), _BLOCK):
            cosines = unit_rows(embeddings(self._queries[start : start + _BLOCK])) @ documents.T
            found.append(np.argsort(-cosines, axis=1, kind="stable")[:, :_TOP])
        return np.concatenate(found)
