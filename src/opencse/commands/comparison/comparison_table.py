"""A comparison of groups of runs, and its table as Markdown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from rich.console import RenderableType
from rich.jupyter import JupyterMixin
from rich.markdown import Markdown

from opencse.commands.comparison.statistics import Spread


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
        return Markdown(markdown(self))


def markdown(comparison: Comparison) -> str:
    """Return a table in GitHub's Markdown, with the notes below it."""
    tasks = list(comparison.rows[0].tasks)
    several, backbone = len(tasks) > 1, any(row.before is not None for row in comparison.rows)
    head = ["run", "seeds", *tasks, *(["average"] if several else []), *(["backbone"] if backbone else [])]
    table = [[*head, "against the first", "steps", "seconds"]]
    for row in comparison.rows:
        cells = [row.label, " ".join(map(str, row.seeds)), *(_spread(row.tasks[task]) for task in tasks)]
        cells += [_spread(row.average)] if several else []
        cells += [_number(row.before)] if backbone else []
        difference = "" if row.difference is None else _signed(row.difference)
        difference += "" if row.interval is None else f" [{', '.join(map(_signed, row.interval))}]"
        seconds = "" if row.seconds.mean is None else f"{row.seconds.mean:.0f}"
        table.append([*cells, difference, "differ" if row.steps is None else str(row.steps), seconds])
    clean = [[cell.replace("|", "\\|").replace("\n", " ") for cell in cells] for cells in table]
    lines = ["| " + " | ".join(cells) + " |" for cells in clean]
    lines.insert(1, "|" + "---|" + "---:|" * (len(table[0]) - 1))
    return "\n".join([*lines, "", *(f"- {note}" for note in comparison.notes)]) + "\n"


def _spread(value: Spread) -> str:
    if value.mean is None:
        return "undefined"
    return f"{value.mean:.2f}" + (f" ± {value.deviation:.2f}" if value.deviation is not None else " (n = 1)")


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"


def _signed(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")
