"""Accuracy on triplets: how often the paraphrase is nearer than the contradiction, by grade and by kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opencse.evaluation import TextEmbeddings, TripletSet, TripletTask
from opencse.evaluation.probes.estimates import Estimate, mean_estimate


@dataclass(frozen=True, kw_only=True)
class TripletGroup:
    """Accuracy on the triplets of a set that share a value, such as the grade `near`.

    Attributes:
        column: The grouping column.
        value: The shared value.
        accuracy: Share whose positive is nearer, with an interval over triplets.
    """

    column: str
    value: str
    accuracy: Estimate


@dataclass(frozen=True, kw_only=True)
class TripletResult:
    """Accuracy on one set of triplets.

    Attributes:
        name: Name of the set.
        accuracy: Share of all triplets whose positive is nearer than their negative; a tie is not.
        groups: The same by group, in the order of the file.
        rows_right: For each triplet, in order: whether its positive is nearer.
    """

    name: str
    accuracy: Estimate
    groups: tuple[TripletGroup, ...]
    rows_right: tuple[bool, ...]


class TripletProbe:
    """Accuracy on sets of triplets, with 95 % intervals.

    Args:
        sets: The sets, such as the written ones of `opencse.evaluation.development_set`.
    """

    def __init__(self, sets: Sequence[TripletSet]) -> None:
        self._tasks = [TripletTask(data=each) for each in sets]

    def texts(self) -> Iterator[str]:
        """Yield every text whose vector `measure` needs."""
        for task in self._tasks:
            yield from task.texts()

    def measure(self, embeddings: TextEmbeddings) -> tuple[TripletResult, ...]:
        """Return the accuracy on every set."""
        return tuple(
            triplet_result(task.name, task.margins(embeddings) > 0, task.data.groups()) for task in self._tasks
        )


def triplet_result(name: str, right: np.ndarray, groups: Mapping[tuple[str, str], np.ndarray]) -> TripletResult:
    """Return the accuracy over all triplets and for each group.

    Args:
        name: Name of the set.
        right: Whether the positive of each triplet is nearer, (n,).
        groups: Rows of every group by column and value.
    """
    return TripletResult(
        name=name,
        accuracy=mean_estimate(right),
        groups=tuple(
            TripletGroup(column=column, value=value, accuracy=mean_estimate(right[rows]))
            for (column, value), rows in groups.items()
        ),
        rows_right=tuple(right.tolist()),
    )
