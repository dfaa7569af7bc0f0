"""A comparison of groups of runs, and its table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import RenderableType
from rich.jupyter import JupyterMixin

from opencse.commands.comparison.statistics import Spread
from opencse.foundation.result_table import Cell, Number, Table


@dataclass(frozen=True, kw_only=True)
class GroupRow:
    """Results of one group of runs.

    Attributes:
        label: Recipe and backbone of the group.
        seeds: Seeds of its runs.
        tasks: Mean and deviation over seeds of each task's score.
        average: The same for the average over tasks.
        before: Average of the untouched backbone; None if it was not measured, is undefined, or differs between runs.
        difference: Mean average minus that of the baseline; None for the baseline itself, or if undefined.
        interval: 95 % interval of the difference over test pairs (bootstrap); None without pairs.
        seconds: Training time in seconds, over seeds.
        steps: Number of steps; None if it differs between runs.
    """

    label: str
    seeds: tuple[int, ...]
    tasks: Mapping[str, Spread]
    average: Spread
    before: float | None
    difference: float | None
    interval: tuple[float, float] | None
    seconds: Spread
    steps: int | None


@dataclass(frozen=True, kw_only=True)
class Comparison(JupyterMixin):
    """All groups, scored on the same tasks; displayed as a table in a terminal (rich) and in a notebook.

    Attributes:
        suite: `sts`, `pairs`, or another suite of results.json.
        rows: Results of each group; the first group is the baseline.
        notes: Remarks for the reader.
    """

    suite: str
    rows: tuple[GroupRow, ...]
    notes: tuple[str, ...]

    def __rich__(self) -> RenderableType:
        return self.table()

    def table(self) -> Table:
        """Return a row for each group, with the notes."""
        tasks = list(self.rows[0].tasks)
        average = ["average"] if len(tasks) > 1 else []
        backbone = ["backbone"] if any(row.before is not None for row in self.rows) else []
        rows: list[list[Cell]] = []
        for row in self.rows:
            between = "" if row.interval is None else " to ".join(str(Number(end, signed=True)) for end in row.interval)
            cells: list[Cell] = [row.label, " ".join(map(str, row.seeds)), *map(_spread, row.tasks.values())]
            cells += [_spread(row.average) for _ in average]
            cells += ["" if row.before is None else Number(row.before) for _ in backbone]
            cells.append("" if row.difference is None else Number(row.difference, aside=between, signed=True))
            cells.append("differ" if row.steps is None else row.steps)
            cells.append("" if row.seconds.mean is None else Number(row.seconds.mean, 0))
            rows.append(cells)
        heads = ["run", "seeds", *tasks, *average, *backbone, "against the first", "steps", "seconds"]
        return Table(heads, rows, notes=self.notes)


def _spread(value: Spread) -> Number:
    alone = value.mean is not None and value.deviation is None
    return Number(value.mean, deviation=value.deviation, aside="n = 1" if alone else "")
