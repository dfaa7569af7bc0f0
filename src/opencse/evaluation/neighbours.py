"""Nearest neighbours: k-NN classification."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from opencse.evaluation.task import TaskResult, TextEmbeddings, unit_rows
from opencse.foundation.errors import OpencseError

_BLOCK = 512  # rows at a time: bounds the memory of the similarities


@dataclass(frozen=True, kw_only=True, eq=False)
class NeighbourTask:
    """Leave-one-out k-nearest-neighbour classification by cosine.

    Metrics, in percent: `accuracy` of the label with the largest sum of cosines among the k nearest other texts, and
    `precision@k`, the share of these with the same label, which changes in steps k times as fine.

    Args:
        name: Name of the data set.
        items: n distinct texts.
        labels: Their n labels.
        k: Number of neighbours that vote.
        main: Main metric of the task.

    Raises:
        OpencseError: Texts and labels differ in number, a text occurs twice, or there are no more than k texts.
    """

    name: str
    items: Sequence[str]
    labels: Sequence[str]
    k: int = 10
    main: str = "accuracy"

    def __post_init__(self) -> None:
        if len(self.items) != len(self.labels):
            raise OpencseError(f"{self.name}: {len(self.items)} texts, {len(self.labels)} labels", "Give one per text.")
        if len(set(self.items)) < len(self.items):
            raise OpencseError(f"{self.name}: a text occurs twice", "Keep one of them.")
        if len(self.items) <= self.k:
            raise OpencseError(f"{self.name}: {len(self.items)} texts for {self.k} neighbours", "Give more texts.")

    def texts(self) -> Iterator[str]:
        """Yield the texts."""
        yield from self.items

    def score(self, embeddings: TextEmbeddings) -> TaskResult:
        """Classify every text by its neighbours."""
        names, labels = np.unique(np.array(self.labels), return_inverse=True)
        nearest, cosines = nearest_rows(embeddings(self.items), self.k)
        votes = np.zeros((len(labels), len(names)))
        np.add.at(votes, (np.arange(len(labels))[:, None], labels[nearest]), cosines)
        right, own = votes.argmax(axis=1) == labels, labels[nearest] == labels[:, None]
        rows = json.dumps([list(self.items), list(self.labels), self.k])
        return TaskResult(
            task=self.name,
            main=self.main,
            metrics={"accuracy": 100 * float(right.mean()), f"precision@{self.k}": 100 * float(own.mean())},
            rows=len(labels),
            data_sha256=hashlib.sha256(rows.encode()).hexdigest(),
            details={"text": "given", "labels": len(names), "similarity": "cosine"},
        )


def nearest_rows(matrix: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the k nearest other rows of each row by cosine, in descending order.

    Args:
        matrix: (n, d) vectors, n > k.
        k: Number of neighbours.

    Returns:
        Row numbers (n, k) and their cosines (n, k). Ties at rank k are broken arbitrarily.
    """
    unit = unit_rows(matrix)
    rows, cosines = [], []
    for start in range(0, len(unit), _BLOCK):
        similarities = unit[start : start + _BLOCK] @ unit.T
        block = np.arange(len(similarities))
        similarities[block, start + block] = -np.inf
        top = np.argpartition(-similarities, k - 1, axis=1)[:, :k]
        values = np.take_along_axis(similarities, top, axis=1)
        order = np.argsort(-values, axis=1, kind="stable")
        rows.append(np.take_along_axis(top, order, axis=1))
        cosines.append(np.take_along_axis(values, order, axis=1))
    return np.concatenate(rows), np.concatenate(cosines)
