"""The interface of a task, and one encoding pass for all tasks."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from opencse.foundation.errors import OpencseError

Encode = Callable[[Sequence[str]], np.ndarray]
"""A model: from n texts to a float matrix (n, d)."""


class TextEmbeddings:
    """Lookup of the vectors of encoded texts.

    Args:
        texts: m distinct texts.
        matrix: Vectors (m, d), row i for text i.
    """

    def __init__(self, texts: Sequence[str], matrix: np.ndarray) -> None:
        if len(texts) != len(matrix):
            raise OpencseError(f"the model returned {len(matrix)} vectors for {len(texts)} texts")
        if not np.isfinite(matrix).all():
            row = int(np.flatnonzero(~np.isfinite(matrix).all(axis=1))[0])
            raise OpencseError(
                f"the model returned a vector that is not finite, for the text {texts[row][:60]!r}",
                "The weights are damaged, or the precision is too low for this model: try fp32.",
            )
        self._row = {text: row for row, text in enumerate(texts)}
        self._matrix = matrix

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors (n, d) of n texts that were encoded."""
        return self._matrix[[self._row[text] for text in texts]]


@dataclass(frozen=True, kw_only=True)
class TaskResult:
    """Scores of one task.

    Args:
        task: Name of the task.
        main: Name of the metric that enters averages; None if none does.
        metrics: Metrics by name; correlations and accuracies times 100. None is undefined, with the reason in
            `undefined`.
        rows: Number of test items.
        data_sha256: Hash of the test items, to detect different data under the same name.
        undefined: Reason for each undefined metric, by name.
        details: Further results and settings (scores by subset, the text variant, …); JSON types only.
    """

    task: str
    main: str | None
    metrics: Mapping[str, float | None]
    rows: int
    data_sha256: str
    undefined: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def score(self) -> float | None:
        """The main metric."""
        return None if self.main is None else self.metrics[self.main]


def rows_sha256(rows: Iterable[object], end: str = "") -> str:
    """Return the hash of rows of JSON types in their order, each followed by `end`."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(f"{json.dumps(row)}{end}".encode())
    return digest.hexdigest()


class HasTexts(Protocol):
    """Anything whose texts are encoded."""

    def texts(self) -> Iterable[str]:
        """Return every text whose vector is needed; repetitions cost nothing."""


class Task(HasTexts, Protocol):
    """A test set with its metric. Any object with these three members can be evaluated."""

    @property
    def name(self) -> str:
        """Name in tables and files."""

    def score(self, embeddings: TextEmbeddings) -> TaskResult:
        """Return the scores of the vectors."""


@dataclass(frozen=True, kw_only=True)
class Results:
    """The results of several tasks.

    Args:
        results: One per task, in the order asked for.
    """

    results: tuple[TaskResult, ...]

    @property
    def average(self) -> float | None:
        """Mean of the main metrics; None if one of them is undefined, or if no task has one."""
        scores = [result.score for result in self.results if result.main is not None]
        defined = [score for score in scores if score is not None]
        return sum(defined) / len(defined) if scores and len(defined) == len(scores) else None

    def __getitem__(self, task: str) -> TaskResult:
        """Return the result of the task named `task`."""
        return next(result for result in self.results if result.task == task)


def distinct_texts(tasks: Iterable[HasTexts]) -> list[str]:
    """Return the distinct texts of all tasks, in order of first occurrence."""
    return list(dict.fromkeys(text for task in tasks for text in task.texts()))


def score(tasks: Sequence[Task], embeddings: TextEmbeddings) -> Results:
    """Score tasks on given vectors: those of `distinct_texts(tasks)`, which a training loop prepares once."""
    return Results(results=tuple(task.score(embeddings) for task in tasks))


def evaluate_tasks(encode: Encode, tasks: Sequence[Task]) -> Results:
    """Encode every distinct text of all tasks once, then score each task.

    Args:
        encode: The model: an `opencse.encoder.embedder.Embedder`, the `encode` method of any library, or any function.
        tasks: The tasks.
    """
    if not tasks:
        raise OpencseError("there is nothing to evaluate", "Name at least one task.")
    name, count = Counter(task.name for task in tasks).most_common(1)[0]
    if count > 1:
        raise OpencseError(f"two tasks are named {name!r}", "Rename one: results are keyed by name.")
    texts = distinct_texts(tasks)
    return score(tasks, TextEmbeddings(texts, np.asarray(encode(texts))))
