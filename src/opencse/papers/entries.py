"""One table or figure of a paper as a TOML file: `entries/PAPER/TABLE.toml`.

A reproduced table: measured scores with the published ones beside them.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from opencse.evaluation import ScoredPairs
from opencse.evaluation.probes.probes import SPLITS
from opencse.foundation.result_table import Cell as TableCell
from opencse.foundation.result_table import Number, Table
from opencse.foundation.toml_tables import decode, parse_toml, unknown_name_error
from opencse.text.surface import consistency_opposition

_SHIPPED = Path(__file__).parent / "entries"


@dataclass(frozen=True, kw_only=True)
class System:
    """One row of a table of scores.

    Attributes:
        label: What the paper calls it; two rows may share a label if they share no family.
        recipe: The recipe; empty for the untouched backbone.
        set: Settings, as after `--set`.
        column: The column that the corpus must have, as a language model wrote it; without it the
            row is missing.
        model: Released models by family of backbones, which take the place of a training with the
            recipe where the backbones are the paper's.
        pooling: Of the untouched backbone.
        whitened: Whether the untouched backbone's vectors are whitened on the corpus.
        families: Families of backbones; empty for those with printed scores, or for all of the
            entry if there are none.
        printed: What the paper printed, by family of backbones: the scores of the entry's first
            columns in their order, or that of the last alone.
        deviations: The printed standard deviations, in the form of `printed`.
        missing: Why this row cannot be had, in place of a recipe; empty otherwise.
    """

    label: str
    recipe: str = ""
    set: tuple[str, ...] = ()
    column: str = ""
    model: dict[str, str] = field(default_factory=dict)
    pooling: Literal["", "cls", "mean", "first_last", "embeddings_last"] = ""
    whitened: bool = False
    families: tuple[str, ...] = ()
    printed: dict[str, tuple[float, ...]] = field(default_factory=dict)
    deviations: dict[str, tuple[float, ...]] = field(default_factory=dict)
    missing: str = ""


@dataclass(frozen=True, kw_only=True)
class PairGroup:
    """A group of sentence pairs: from opencse's own sentences, from the STS tasks, or written out.

    Attributes:
        name: What its columns begin with.
        transformation: Sentences of the probe with this transformation, such as `negation`.
        least_score: Pairs of the STS tasks with at least this human score …
        below_score: … below this one …
        below_overlap: … and with a lexical overlap below this …
        task: … of this task alone; empty for all.
        place: A single pair of the STS data: its task, its part, and its row from 0.
        sentence: One sentence …
        versions: … and its versions.
    """

    name: str
    transformation: str = ""
    least_score: float | None = None
    below_score: float = 5.01
    below_overlap: float = 1.01
    task: str = ""
    place: tuple[str, str, int] | None = None
    sentence: str = ""
    versions: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Query:
    """A sentence that is searched for among those of STS-B test.

    Attributes:
        text: The sentence.
        answer: Where the sentence that should be found stands: the row of the test part, from 0,
            and 1 or 2 for the side of the pair. Empty if none is known.
    """

    text: str
    answer: tuple[int, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Entry:
    """A table or figure of a paper.

    Attributes:
        name: Paper and table, such as `osscse/table-4`.
        title: What the table shows.
        kind: What is measured of each system, and so what its columns name. `scores`: STS tasks,
            `Cont.` and `Oppn.`, and mean cosines by transformation, such as `cosine: negation`.
            `tasks`: any task of `opencse evaluate`, with its main metric or another, such as
            `STSB-97: recall@1`. `curves`: what `Selection.watch` measures while a system trains;
            the last values stand in the table. `splits`: OssCSE's consistent and opposed pairs;
            with systems, their scores on the parts of each set. `pairs`: cosines and wording of
            `groups` of sentence pairs, such as `negation: cosine`. `training_pairs`: the same of
            the pairs that a system trains on, by the vectors of the first system. `cost`: the
            minutes of a training. `neighbours`: the rank of the answer to each of the `queries`.
            `projection`: sentences in two dimensions.
        columns: What is measured, in the order of the paper; `Avg.` is the mean of the others, and
            `Avg. METRIC` of those with this metric.
        digits: Digits behind the point.
        plot: How pairs are drawn beside the table: as a `scatter` of cosine and match error rate,
            or as a `histogram` of cosines. Curves and projections always are.
        families: Families of backbones in the paper.
        seeds: Runs behind each printed score.
        systems: The rows.
        groups: The groups of sentence pairs that are measured.
        queries: The sentences that are searched for.
        watch: What is measured while a system trains (`Selection.watch`), of which the columns are
            parts.
        texts: Number of pairs of each group whose texts are listed, with the cosines.
        note: What a reader should know.
    """

    name: str
    title: str
    kind: Literal[
        "scores",
        "tasks",
        "curves",
        "splits",
        "pairs",
        "cost",
        "training_pairs",
        "neighbours",
        "projection",
    ] = "scores"
    columns: tuple[str, ...] = (
        "STS12",
        "STS13",
        "STS14",
        "STS15",
        "STS16",
        "STS-B",
        "SICK-R",
        "Avg.",
    )
    digits: int = 2
    plot: Literal["", "scatter", "histogram"] = ""
    families: tuple[str, ...] = ("bert-base",)
    seeds: int = 1
    systems: tuple[System, ...] = ()
    groups: tuple[PairGroup, ...] = ()
    queries: tuple[Query, ...] = ()
    watch: tuple[str, ...] = ()
    texts: int = 0
    note: str = ""

    def systems_of(self, family: str) -> tuple[System, ...]:
        """Return the rows that the paper has for a family of backbones."""
        return tuple(
            row for row in self.systems if family in (row.families or row.printed or self.families)
        )


def entry_names() -> list[str]:
    """Return the names of all entries."""
    return sorted(f"{path.parent.name}/{path.stem}" for path in _SHIPPED.glob("*/*.toml"))


def load_entry(name: str) -> Entry:
    """Read an entry.

    Raises:
        OpencseError: There is no such entry.
    """
    if name not in entry_names():
        raise unknown_name_error("table", name, entry_names(), "opencse reproduce")
    content = parse_toml((_SHIPPED / f"{name}.toml").read_text(encoding="utf-8"), name)
    return decode(Entry, content | {"name": name}, name)


PARTS = ("Cont.", "Oppn.")

Listing = tuple[tuple[str, ...], ...]
"""Rows of texts to be read, the headings first."""

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
        printed = (
            ""
            if self.printed is None
            else str(Number(self.printed, digits, deviation=self.deviation))
        )
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
        figures = Table(
            ("", *self.columns), rows, f"{self.entry}: {self.title}", self.notes
        ).markdown()
        return (
            f"{figures}\n{Table(self.listing[0], self.listing[1:]).markdown()}"
            if self.listing
            else figures
        )


def scores_table(
    entry: Entry,
    scores: Mapping[str, Mapping[str, Sequence[Scores] | str]],
    notes: Sequence[str] = (),
) -> ReproducedTable:
    """Put the scores of runs into the form of the paper's table.

    Args:
        entry: The table.
        scores: By family and by the label of the system: for each seed the scores by column, or why
            there are none. The key of a family says with which backbone it was measured, as in
            `bert-base` or `bert-base: mini-mlm`.
        notes: How the scores came about.
    """
    rows: dict[str, tuple[Cell, ...]] = {}
    sets: set[int] = set()
    for key, by_label in scores.items():
        family = key.partition(":")[0]
        for system in entry.systems_of(family):
            runs = by_label[system.label]
            if isinstance(runs, str):
                cells = [
                    Cell(missing=runs if column == entry.columns[-1] else "")
                    for column in entry.columns
                ]
            else:
                cells = [_column_cell(entry, runs, column) for column in entry.columns]
                parts = [
                    (run, part)
                    for run in runs
                    for part in PARTS
                    if part in run and part in entry.columns
                ]
                sets |= {sum(name.startswith(f"{part}: ") for name in run) for run, part in parts}
            printed = _printed(system.printed.get(family, ()), len(cells))
            deviations = _printed(system.deviations.get(family, ()), len(cells))
            rows[system.label if len(scores) == 1 else f"{system.label}, {key}"] = tuple(
                replace(cell, printed=value, deviation=deviation)
                for cell, value, deviation in zip(cells, printed, deviations, strict=True)
            )
    fewer = sets - {0, len(SPLITS)}
    note = f"Cont. and Oppn. are over {min(fewer, default=0)} sets of pairs; the paper's are over {len(SPLITS)}."
    columns, digits = (
        entry.columns,
        [0 if column.endswith(": count") else entry.digits for column in entry.columns],
    )
    if entry.kind == "splits":  # a row for each set
        columns, digits = tuple(rows), [entry.digits] * len(rows)
        rows = dict(zip(entry.columns, zip(*rows.values(), strict=True), strict=True))
    return _reproduced(entry, columns, rows, digits, [*notes, *([note] if fewer else [])])


def splits_table(
    entry: Entry, sets: Mapping[str, ScoredPairs], lacking: Mapping[str, str]
) -> ReproducedTable:
    """Return OssCSE's Table 2: consistent and opposed pairs of each set, and the medians that divide them."""
    rows = {}
    for name, printed in SPLITS.items():
        if name in sets:
            pairs = sets[name]
            split = consistency_opposition(pairs.sentence1, pairs.sentence2, pairs.scores)
            counts = (split.consistent.sum(), (~split.consistent).sum())
            values = (*counts, split.median_score, split.median_error_rate)
            cells = [
                Cell(values=(float(v),), printed=p) for v, p in zip(values, printed, strict=True)
            ]
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
    return ReproducedTable(
        entry=entry.name, title=entry.title, columns=columns, rows=rows, notes=every, digits=digits
    )


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
    rows = [[run.get(name, "not measured without --data") for name in names] for run in runs]
    missing = next((value for row in rows for value in row if isinstance(value, str)), "")
    return (
        Cell(missing=missing)
        if missing
        else Cell(values=tuple(statistics.fmean(map(float, row)) for row in rows))
    )
