"""Tasks on truncated vectors, as users of Matryoshka models store them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from opencse.evaluation.task import Task, TaskResult, TextEmbeddings, distinct_texts


@dataclass(frozen=True, kw_only=True, eq=False)
class TruncatedTask:
    """A task on the first dimensions of each vector (Matryoshka representations: Kusupati et al., NeurIPS 2022).

    Attributes:
        task: The task.
        dimensions: Number of dimensions that are kept, at most those of the model.
    """

    task: Task
    dimensions: int

    @property
    def name(self) -> str:
        """Name of the task, with the number of dimensions."""
        return f"{self.task.name} at {self.dimensions} dimensions"

    def texts(self) -> Iterable[str]:
        """Return the texts of the task."""
        return self.task.texts()

    def score(self, embeddings: TextEmbeddings) -> TaskResult:
        """Return the scores of the truncated vectors."""
        texts = distinct_texts([self.task])
        truncated = TextEmbeddings(texts, embeddings(texts)[:, : self.dimensions])
        return replace(self.task.score(truncated), task=self.name)
