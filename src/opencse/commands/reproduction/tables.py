"""A reproduced table: measured scores with the published ones beside them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from opencse.commands.reproduction.details import Listing
from opencse.commands.reproduction.entries import Entry
from opencse.evaluation import ScoredPairs
from opencse.evaluation.probes.scored_pairs import SPLITS
from opencse.foundation.result_table import Cell as TableCell
from opencse.foundation.result_table import Number, Table
from opencse.text.surface import consistency_opposition

PARTS = ("Cont.", "Oppn.")

Scores = Mapping[str, float | str]
"""Scores by column, or why there are none."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One figure of a table: what was measured, a value for each seed, or why not; and what the paper prints."""

    values: tuple[float, ...] = ()
    printed: float | None = None
    deviation: float | None = None
    missing: str = ""

    def shown(self, digits: int = 2) -> TableCell:
        """Return the mean ± standard deviation over the seeds, and the printed value in brackets."""
        printed = "" if self.printed is None else str(Number(self.printed, digits, deviation=self.deviation))
        if self.values:
            deviation = statistics.stdev(self.values) if len(self.values) > 1 else None
            return Number(statistics.fmean(self.values), digits, aside=printed, deviation=deviation)
        missing = f"not had: {self.missing}" if self.missing else ""
        return f"{missing} ({printed})".strip() if printed else missing


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
    digits: Sequence[int] = ()
    listing: Listing = ()

    def markdown(self) -> str:
        """Return the table as Markdown."""
        digits = self.digits or (2,) * len(self.columns)
        rows = [
            (label, *(cell.shown(places) for cell, places in zip(cells, digits, strict=True)))
            for label, cells in self.rows.items()
        ]
        figures = Table(("", *self.columns), rows, f"{self.entry}: {self.title}", self.notes).markdown()
        return f"{figures}\n{Table(self.listing[0], self.listing[1:]).markdown()}" if self.listing else figures


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
            runs = by_label[system.label]
            if isinstance(runs, str):
                cells = [Cell(missing=runs if column == entry.columns[-1] else "") for column in entry.columns]
            else:
                cells = [_column_cell(entry, runs, column) for column in entry.columns]
                parts = [(run, part) for run in runs for part in PARTS if part in run and part in entry.columns]
                sets |= {sum(name.startswith(f"{part}: ") for name in run) for run, part in parts}
            printed = _printed(system.printed.get(family, ()), len(cells))
            deviations = _printed(system.deviations.get(family, ()), len(cells))
            rows[system.label if len(scores) == 1 else f"{system.label}, {key}"] = tuple(
                replace(cell, printed=value, deviation=deviation)
                for cell, value, deviation in zip(cells, printed, deviations, strict=True)
            )
    fewer = sets - {0, len(SPLITS)}
    note = f"Cont. and Oppn. are over {min(fewer, default=0)} sets of pairs; the paper's are over {len(SPLITS)}."
    columns, digits = entry.columns, [0 if column.endswith(": count") else entry.digits for column in entry.columns]
    if entry.kind == "splits":  # a row for each set
        columns, digits = tuple(rows), [entry.digits] * len(rows)
        rows = dict(zip(entry.columns, zip(*rows.values(), strict=True), strict=True))
    return _reproduced(entry, columns, rows, digits, [*notes, *([note] if fewer else [])])


def splits_table(entry: Entry, sets: Mapping[str, ScoredPairs], lacking: Mapping[str, str]) -> ReproducedTable:
    """Return OssCSE's Table 2: consistent and opposed pairs of each set, and the medians that divide them."""
    rows = {}
    for name, known in SPLITS.items():
        printed = (*known.pairs, *known.medians)
        if name in sets:
            pairs = sets[name]
            found = consistency_opposition(pairs.sentence1, pairs.sentence2, pairs.scores)
            counts = (found.consistent.sum(), (~found.consistent).sum())
            values = (*counts, found.median_score, found.median_error_rate)
            cells = [Cell(values=(float(v),), printed=p) for v, p in zip(values, printed, strict=True)]
        else:
            cells = [Cell(printed=value) for value in printed]
            cells[0] = replace(cells[0], missing=lacking.get(name, "no data"))
        rows[name] = tuple(cells)
    return _reproduced(entry, (*PARTS, "median score", "median error rate"), rows, (0, 0, 2, 4), ())


def _reproduced(
    entry: Entry,
    columns: tuple[str, ...],
    rows: dict[str, tuple[Cell, ...]],
    digits: Sequence[int],
    notes: Sequence[str],
) -> ReproducedTable:
    every = (*notes, *([entry.note] if entry.note else []), "In brackets what the paper prints.")
    return ReproducedTable(entry=entry.name, title=entry.title, columns=columns, rows=rows, notes=every, digits=digits)


def _printed(scores: Sequence[float], columns: int) -> list[float | None]:
    """Return a printed row: a single score is the last one, several are the first ones."""
    gap = [None] * (columns - len(scores))
    return [*gap, *scores] if len(scores) == 1 else [*scores, *gap]


def _column_cell(entry: Entry, runs: Sequence[Scores], column: str) -> Cell:
    """Return a column of a row; `Avg.` or `Avg. METRIC` is the mean of all sets of scored pairs, or other columns."""
    if not column.startswith("Avg."):
        return _cell(runs, [column])
    metric = column.removeprefix("Avg.").strip()
    names = [name for name in entry.columns if not name.startswith("Avg.")]
    if entry.kind == "scores":
        names = [name for name in runs[0] if name.partition(":")[0] not in (*PARTS, "cosine")]
    elif metric:
        names = [name for name in names if name.endswith(f": {metric}")]
    cell = _cell(runs, names)
    return Cell(missing="not every column is there") if cell.missing else cell


def _cell(runs: Sequence[Scores], names: Sequence[str]) -> Cell:
    """Return the mean of some scores of each run, or the reason why one of them is missing."""
    found = [[run.get(name, "not measured without --data") for name in names] for run in runs]
    missing = next((value for row in found for value in row if isinstance(value, str)), "")
    return Cell(missing=missing) if missing else Cell(values=tuple(statistics.fmean(map(float, row)) for row in found))
