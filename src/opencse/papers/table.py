"""A reproduced table: measured values with the published ones next to them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from opencse.evaluation import ScoredPairs
from opencse.evaluation.probes.probes import SPLITS
from opencse.foundation.result_table import Cell, Number, Table
from opencse.papers.entries import Entry, Listing, System
from opencse.papers.scores import SIDES, EntryColumn, Measured, Missing, UsualScores
from opencse.text.surface import consistency_opposition

SystemRuns = Sequence[Measured] | Missing
"""What was measured of a system, one for each seed, or why nothing was."""


@dataclass(frozen=True, kw_only=True)
class FamilyResults:
    """The systems of an entry from one backbone.

    Attributes:
        family: The family of the paper whose rows and printed values these are.
        heading: The family, and the backbone if another stands for it.
        systems: What was measured, by the label of the system.
    """

    family: str
    heading: str
    systems: Mapping[str, SystemRuns]


@dataclass(frozen=True, kw_only=True)
class ReproducedCell:
    """One cell of a table: what was measured, a value for each seed, or why not; and what the paper prints."""

    values: tuple[float, ...] = ()
    printed: float | None = None
    deviation: float | None = None
    missing: str = ""

    def shown(self, digits: int = 2) -> Cell:
        """Return the mean ± standard deviation over the seeds, and the printed value in brackets."""
        printed = ""
        if self.printed is not None:
            printed = str(Number(self.printed, digits, deviation=self.deviation))
        if self.values:
            deviation = statistics.stdev(self.values) if len(self.values) > 1 else None
            return Number(statistics.fmean(self.values), digits, aside=printed, deviation=deviation)
        missing = f"not had: {self.missing}" if self.missing else ""
        return f"{missing} ({printed})".strip() if printed else missing


@dataclass(frozen=True, kw_only=True)
class ReproducedTable:
    """A table with measured and printed values.

    Attributes:
        entry: Its name.
        title: Its title.
        columns: The headings after the first.
        rows: For each label its cells, in the order of the columns.
        notes: How the values came about, and what is missing.
        digits: Digits after the point, by column; 2 where empty.
        listing: Texts to be read, the headings first; empty for most tables.
    """

    entry: str
    title: str
    columns: tuple[str, ...]
    rows: dict[str, tuple[ReproducedCell, ...]]
    notes: tuple[str, ...] = ()
    digits: Sequence[int] = ()
    listing: Listing = ()

    def markdown(self) -> str:
        """Return the table as Markdown."""
        digits = self.digits or (2,) * len(self.columns)
        rows = []
        for label, cells in self.rows.items():
            shown = [cell.shown(places) for cell, places in zip(cells, digits, strict=True)]
            rows.append((label, *shown))
        title = f"{self.entry}: {self.title}"
        text = Table(("", *self.columns), rows, title, self.notes).markdown()
        if self.listing:
            headings, *texts = self.listing
            text += f"\n{Table(headings, texts).markdown()}"
        return text


def scores_table(
    entry: Entry, results: Sequence[FamilyResults], notes: Sequence[str] = ()
) -> ReproducedTable:
    """Put what was measured into the form of the paper's table.

    Args:
        entry: The table.
        results: What was measured, by backbone.
        notes: How it was measured.
    """
    columns = entry.parsed_columns
    rows: dict[str, tuple[ReproducedCell, ...]] = {}
    for measured in results:
        for system in entry.systems_of(measured.family):
            label = system.label
            if len(results) > 1:
                label = f"{label}, {measured.heading}"
            cells = _measured_cells(entry, columns, measured.systems[system.label])
            rows[label] = _with_printed(cells, system, measured.family)
    all_notes = list(notes)
    all_notes.extend(_fewer_sets(entry, results))
    titles = entry.columns
    digits = [0 if column.quantity == "count" else entry.digits for column in columns]
    # The paper has a row for each set, and a column for each system.
    if entry.kind == "splits":
        titles = tuple(rows)
        digits = [entry.digits] * len(titles)
        rows = dict(zip(entry.columns, zip(*rows.values(), strict=True), strict=True))
    return _reproduced(entry, titles, rows, digits, all_notes)


def _measured_cells(
    entry: Entry, columns: Sequence[EntryColumn], runs: SystemRuns
) -> list[ReproducedCell]:
    if isinstance(runs, Missing):
        # The reason stands once, in the last cell.
        reasons = [""] * (len(columns) - 1) + [runs.reason]
        return [ReproducedCell(missing=reason) for reason in reasons]
    return [_column_cell(entry, columns, column, runs) for column in columns]


def _column_cell(
    entry: Entry, columns: Sequence[EntryColumn], column: EntryColumn, runs: Sequence[Measured]
) -> ReproducedCell:
    """Return a cell of a row; an average is that of the other columns, or of all sets of scored pairs."""
    # Usual scores know more sets than an entry has columns, and average all of them.
    if not column.is_average or entry.kind == "scores":
        return _cell(runs, [column])
    averaged = []
    for other in columns:
        same_metric = not column.quantity or other.quantity == column.quantity
        if not other.is_average and same_metric:
            averaged.append(other)
    cell = _cell(runs, averaged)
    if cell.missing:
        return ReproducedCell(missing="not every column is there")
    return cell


def _cell(runs: Sequence[Measured], columns: Sequence[EntryColumn]) -> ReproducedCell:
    """Return the mean of some columns for each run, or the reason why one of them is missing."""
    means = []
    for run in runs:
        values = []
        for column in columns:
            value = run.value(column)
            if isinstance(value, Missing):
                return ReproducedCell(missing=value.reason)
            values.append(value)
        means.append(statistics.fmean(values))
    return ReproducedCell(values=tuple(means))


def _with_printed(
    cells: Sequence[ReproducedCell], system: System, family: str
) -> tuple[ReproducedCell, ...]:
    """Return the cells of a row with what the paper prints."""
    printed = _in_columns(system.printed.get(family, ()), len(cells))
    deviations = _in_columns(system.deviations.get(family, ()), len(cells))
    complete = []
    for cell, value, deviation in zip(cells, printed, deviations, strict=True):
        complete.append(replace(cell, printed=value, deviation=deviation))
    return tuple(complete)


def _in_columns(scores: Sequence[float], columns: int) -> list[float | None]:
    """Return a printed row: a single score is the last one, several are the first ones."""
    gap = [None] * (columns - len(scores))
    if len(scores) == 1:
        return [*gap, *scores]
    return [*scores, *gap]


def _fewer_sets(entry: Entry, results: Sequence[FamilyResults]) -> list[str]:
    """Return a note if `Cont.` and `Oppn.` are averaged over fewer sets of pairs than in the paper."""
    counts: set[int] = set()
    for measured in results:
        for runs in measured.systems.values():
            for run in () if isinstance(runs, Missing) else runs:
                if not isinstance(run, UsualScores):
                    continue
                for side in SIDES:
                    if side in entry.columns and side in run.averages:
                        counts.add(run.sets_of_pairs(side))
    fewer = counts - {0, len(SPLITS)}
    if not fewer:
        return []
    return [
        f"Cont. and Oppn. are over {min(fewer)} sets of pairs; the paper's are over {len(SPLITS)}."
    ]


def splits_table(
    entry: Entry, sets: Mapping[str, ScoredPairs], lacking: Mapping[str, str]
) -> ReproducedTable:
    """Return OssCSE's Table 2: consistent and opposed pairs of each set, and the medians that divide them."""
    rows = {}
    for name, printed in SPLITS.items():
        if name in sets:
            pairs = sets[name]
            split = consistency_opposition(pairs.sentence1, pairs.sentence2, pairs.scores)
            consistent = split.consistent.sum()
            opposed = (~split.consistent).sum()
            values = (consistent, opposed, split.median_score, split.median_error_rate)
            cells = [
                ReproducedCell(values=(float(value),), printed=known)
                for value, known in zip(values, printed, strict=True)
            ]
        else:
            cells = [ReproducedCell(printed=value) for value in printed]
            cells[0] = replace(cells[0], missing=lacking.get(name, "no data"))
        rows[name] = tuple(cells)
    columns = (*SIDES, "median score", "median error rate")
    return _reproduced(entry, columns, rows, (0, 0, 2, 4), [])


def _reproduced(
    entry: Entry,
    columns: tuple[str, ...],
    rows: dict[str, tuple[ReproducedCell, ...]],
    digits: Sequence[int],
    notes: Sequence[str],
) -> ReproducedTable:
    every = list(notes)
    if entry.note:
        every.append(entry.note)
    every.append("In brackets what the paper prints.")
    return ReproducedTable(
        entry=entry.name,
        title=entry.title,
        columns=columns,
        rows=rows,
        notes=tuple(every),
        digits=digits,
    )
