"""A reproduced table: measured scores with the published ones beside them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from opencse.commands.reproduction.entries import Entry
from opencse.commands.reproduction.pair_cosines import Listing
from opencse.evaluation.probes.published import SPLITS

Scores = Mapping[str, float | str]
"""Scores by column, or why there are none."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One figure of a table.

    Attributes:
        values: What was measured, one for each seed; empty if there is nothing.
        printed: What the paper has; None if it has nothing.
        deviation: The standard deviation that the paper has beside it.
        missing: Why nothing was measured.
    """

    values: tuple[float, ...] = ()
    printed: float | None = None
    deviation: float | None = None
    missing: str = ""

    def text(self, digits: int = 2) -> str:
        """Return the mean ± standard deviation over the seeds, and the printed value in brackets."""
        shown = f"not had: {self.missing}" if self.missing else ""
        if self.values:
            shown = f"{statistics.fmean(self.values):.{digits}f}"
            shown += f" ± {statistics.stdev(self.values):.{digits}f}" if len(self.values) > 1 else ""
        if self.printed is None:
            return shown
        deviation = "" if self.deviation is None else f" ± {self.deviation:.{digits}f}"
        return f"{shown} ({self.printed:.{digits}f}{deviation})".strip()


@dataclass(frozen=True, kw_only=True)
class ReproducedTable:
    """A table with measured and printed figures.

    Attributes:
        entry: Its name.
        title: Its title.
        columns: The headings after the first.
        rows: For each label its cells, in the order of the columns.
        notes: How the figures came about, and what is missing.
        digits: Digits behind the point, by column; 2 where empty.
        listing: Texts to be read, the headings first; empty for most tables.
    """

    entry: str
    title: str
    columns: tuple[str, ...]
    rows: dict[str, tuple[Cell, ...]]
    notes: tuple[str, ...] = ()
    digits: tuple[int, ...] = ()
    listing: Listing = ()

    def markdown(self) -> str:
        """Return the table as Markdown."""
        lines = [f"# {self.entry}: {self.title}", "", f"| | {' | '.join(self.columns)} |"]
        lines.append("|---|" + "---:|" * len(self.columns))
        for label, cells in self.rows.items():
            digits = self.digits or (2,) * len(cells)
            texts = [cell.text(places) for cell, places in zip(cells, digits, strict=True)]
            lines.append(f"| {label} | {' | '.join(texts)} |")
        for row, shown in enumerate(self.listing):
            lines += [""] if row == 0 else ["|" + "---|" * len(shown)] if row == 1 else []
            lines.append(f"| {' | '.join(text.replace('|', '/') for text in shown)} |")
        return "\n".join([*lines, "", *(f"{note}\n" for note in self.notes)])

    def plain(self) -> dict[str, Any]:
        """Return the table as plain data for JSON."""
        return asdict(self)


def scores_table(
    entry: Entry, scores: Mapping[str, Mapping[str, Sequence[Scores] | str]], notes: Sequence[str] = ()
) -> ReproducedTable:
    """Put the scores of runs into the form of the paper's table.

    Args:
        entry: The table.
        scores: By family and by the label of the system: for each seed the scores by column, or why there are none. The
            key of a family says with which backbone it was measured, as in `bert-base` or `bert-base: mini-mlm`.
        notes: How the scores came about.
    """
    rows: dict[str, tuple[Cell, ...]] = {}
    sets: set[int] = set()
    for key, by_label in scores.items():
        family = key.partition(":")[0]
        for system in entry.systems_of(family):
            width, runs = len(entry.columns), by_label[system.label]
            printed = _printed(system.printed.get(family, ()), width)
            deviations = _printed(system.deviations.get(family, ()), width)
            cells = [cell_of(entry, runs, column) for column in entry.columns]
            if isinstance(runs, str):  # the last cell alone gives the reason
                cells = [*[Cell()] * (width - 1), cells[-1]]
            else:
                sets |= {sum(n.startswith(f"{c}: ") for n in run) for run in runs for c in entry.columns if c in run}
            rows[system.label if len(scores) == 1 else f"{system.label}, {key}"] = tuple(
                replace(cell, printed=value, deviation=deviation)
                for cell, value, deviation in zip(cells, printed, deviations, strict=True)
            )
    digits = [0 if column.endswith(": count") else entry.digits for column in entry.columns]
    table = filled(entry, entry.columns, rows, digits, notes)
    if {"Cont.", "Oppn."} & {*entry.columns} and (fewer := sets - {0, len(SPLITS)}):
        note = f"Cont. and Oppn. are over {min(fewer)} sets of pairs; the paper's are over {len(SPLITS)}."
        return replace(table, notes=(*table.notes, note))
    return table


def filled(
    entry: Entry,
    columns: Sequence[str],
    rows: dict[str, tuple[Cell, ...]],
    digits: Sequence[int],
    notes: Sequence[str] = (),
) -> ReproducedTable:
    """Return the table of an entry, with its note behind others."""
    every = (*notes, *filter(None, [entry.note]), "In brackets what the paper prints.")
    return ReproducedTable(
        entry=entry.name, title=entry.title, columns=tuple(columns), rows=rows, notes=every, digits=tuple(digits)
    )


def _printed(scores: Sequence[float], columns: int) -> list[float | None]:
    """Return a printed row: a single score is the last one, several are the first ones."""
    gap = [None] * (columns - len(scores))
    return [*gap, *scores] if len(scores) == 1 else [*scores, *gap]


def cell_of(entry: Entry, runs: Sequence[Scores] | str, column: str) -> Cell:
    """Return one figure over the seeds, or the reason why there is none."""
    if isinstance(runs, str):
        return Cell(missing=runs)
    average = column.startswith("Avg.")
    values = []
    for run in runs:
        names = _averaged(entry, run, column) if average else [column]
        found = [run.get(name, "not measured without --data") for name in names]
        if missing := [value for value in found if isinstance(value, str)]:
            return Cell(missing="not every column is there" if average else missing[0])
        values.append(statistics.fmean(value for value in found if not isinstance(value, str)))
    return Cell(values=tuple(values))


def _averaged(entry: Entry, run: Scores, column: str) -> list[str]:
    """Return what `Avg.` is the mean of, or `Avg. METRIC`: all sets of scored pairs, or the other columns."""
    if entry.kind == "scores":
        return [name for name in run if name.partition(":")[0] not in ("Cont.", "Oppn.", "cosine")]
    metric = column.removeprefix("Avg.").strip()
    columns = [name for name in entry.columns if not name.startswith("Avg.")]
    return [name for name in columns if name.endswith(f": {metric}")] if metric else columns
