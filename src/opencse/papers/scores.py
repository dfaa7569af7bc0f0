"""What a reproduction measures of one model, by the columns of an entry."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from opencse.evaluation.probes import ProbeScores
from opencse.evaluation.task import TaskResult
from opencse.foundation.figures import Curve

CONSISTENT = "Cont."
OPPOSED = "Oppn."
SIDES = (CONSISTENT, OPPOSED)
"""OssCSE's two parts of a set of pairs: wording that agrees with the meaning, and wording that misleads."""

COSINE = "cosine"
"""Subject of the columns with the mean cosine of a transformation."""


@dataclass(frozen=True)
class Missing:
    """The reason why there is no value."""

    reason: str


NOT_MEASURED = Missing("not measured without --data")


@dataclass(frozen=True)
class EntryColumn:
    """A column of an entry: what it is about, and the quantity of it, if it names one.

    `STS-B` is about the task STS-B; `STS-B dev: spearman` is one of its metrics; `cosine: negation`
    is the mean cosine of a transformation; `Avg. map@10` is the average of the columns with this
    metric.

    Attributes:
        title: The column as the entry writes it.
        subject: A task, a part of the pairs, a group of pairs, or `Avg.` for an average.
        quantity: A metric, a set of pairs or a transformation; empty for the main one.
    """

    title: str
    subject: str
    quantity: str = ""

    @classmethod
    def parse(cls, title: str) -> EntryColumn:
        """Return the column that a title in an entry's file stands for."""
        if title.startswith("Avg."):
            return cls(title, "Avg.", title.removeprefix("Avg.").strip())
        subject, _, quantity = title.partition(": ")
        return cls(title, subject, quantity)

    @property
    def is_average(self) -> bool:
        """Whether the column is an average of others."""
        return self.subject == "Avg."


class Measured(Protocol):
    """What was measured of one model."""

    def value(self, column: EntryColumn) -> float | Missing:
        """Return the value of a column, or why there is none."""


@dataclass(frozen=True, kw_only=True)
class UsualScores:
    """The scores that every run of a reproduction has, as they are stored next to it.

    Correlations are times 100.

    Attributes:
        tasks: Score of each set of scored pairs, by its name.
        consistent: Correlation on the consistent pairs of each set, by the set's name.
        opposed: Correlation on the opposed pairs of each set.
        averages: Average over the sets for `Cont.` and `Oppn.`.
        cosines: Mean cosine of a sentence with each transformation.
    """

    tasks: Mapping[str, float] = field(default_factory=dict)
    consistent: Mapping[str, float] = field(default_factory=dict)
    opposed: Mapping[str, float] = field(default_factory=dict)
    averages: Mapping[str, float] = field(default_factory=dict)
    cosines: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, probed: ProbeScores) -> UsualScores:
        """Return the scores of a probed model, without the undefined ones."""
        tasks = {task.task: task.score for task in probed.sts if task.score is not None}
        consistent: dict[str, float] = {}
        opposed: dict[str, float] = {}
        averages: dict[str, float] = {}
        if probed.splits:
            *sets, average = probed.splits
            for part in sets:
                if part.consistent.value is not None:
                    consistent[part.name] = 100 * part.consistent.value
                if part.opposed.value is not None:
                    opposed[part.name] = 100 * part.opposed.value
            if average.consistent.value is not None:
                averages[CONSISTENT] = 100 * average.consistent.value
            if average.opposed.value is not None:
                averages[OPPOSED] = 100 * average.opposed.value
        cosines: dict[str, float] = {}
        if probed.transformations is not None:
            for kind in probed.transformations.kinds:
                if kind.cosine.value is not None:
                    cosines[kind.kind] = kind.cosine.value
        return cls(
            tasks=tasks,
            consistent=consistent,
            opposed=opposed,
            averages=averages,
            cosines=cosines,
        )

    def value(self, column: EntryColumn) -> float | Missing:
        """Return a score; the average is that over all sets of scored pairs."""
        if column.is_average:
            return statistics.fmean(self.tasks.values()) if self.tasks else NOT_MEASURED
        if column.subject in SIDES and not column.quantity:
            return self.averages.get(column.subject, NOT_MEASURED)
        if column.subject == CONSISTENT:
            return self.consistent.get(column.quantity, NOT_MEASURED)
        if column.subject == OPPOSED:
            return self.opposed.get(column.quantity, NOT_MEASURED)
        if column.subject == COSINE:
            return self.cosines.get(column.quantity, NOT_MEASURED)
        return self.tasks.get(column.title, NOT_MEASURED)

    def sets_of_pairs(self, side: str) -> int:
        """Return over how many sets of pairs `Cont.` or `Oppn.` is averaged."""
        return len(self.consistent if side == CONSISTENT else self.opposed)


@dataclass(frozen=True, kw_only=True)
class TaskMetrics:
    """The metrics of one task; the main one enters averages, if there is one."""

    main: float | None = None
    metrics: Mapping[str, float] = field(default_factory=dict)

    @classmethod
    def of(cls, result: TaskResult) -> TaskMetrics:
        """Return the defined metrics of a result."""
        metrics = {name: value for name, value in result.metrics.items() if value is not None}
        return cls(main=result.score, metrics=metrics)


@dataclass(frozen=True, kw_only=True)
class TaskScores:
    """The metrics of a model on tasks, by task, and why others could not be scored."""

    tasks: Mapping[str, TaskMetrics]
    missing: Mapping[str, Missing] = field(default_factory=dict)

    def value(self, column: EntryColumn) -> float | Missing:
        """Return a metric of a task, by default the main one."""
        if column.subject in self.missing:
            return self.missing[column.subject]
        scored = self.tasks.get(column.subject)
        if scored is None:
            return NOT_MEASURED
        value = scored.metrics.get(column.quantity) if column.quantity else scored.main
        return NOT_MEASURED if value is None else value


@dataclass(frozen=True, kw_only=True)
class TrainingCost:
    """Minutes of a training, and of one of its epochs."""

    minutes: float
    epochs: float

    def value(self, column: EntryColumn) -> float | Missing:
        """Return the minutes, or those of an epoch."""
        if column.title == "minutes an epoch":
            return self.minutes / self.epochs
        return self.minutes


@dataclass(frozen=True, kw_only=True)
class WatchedCurves:
    """What was watched while a system trained, by the title of its column: step and value."""

    curves: Mapping[str, Curve]

    def value(self, column: EntryColumn) -> float | Missing:
        """Return the last value of a curve."""
        curve = self.curves.get(column.title)
        return curve[-1][1] if curve else NOT_MEASURED


def columns_of(titles: Sequence[str]) -> list[EntryColumn]:
    """Return the columns that some titles stand for."""
    return [EntryColumn.parse(title) for title in titles]


def as_numbers(table: Mapping[str, Any]) -> dict[str, float]:
    """Return a table of numbers that was read from a file."""
    return {name: float(value) for name, value in table.items()}
