"""OssCSE's consistent and opposed pairs: how many there are (Table 2), and how models score on them (Table 6)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from opencse.commands.reproduction.entries import Entry, System
from opencse.commands.reproduction.tables import Cell, ReproducedTable, Scores, cell_of, filled
from opencse.evaluation import ScoredPairs
from opencse.evaluation.probes.published import SPLITS, PublishedSplit
from opencse.text.surface.consistency import consistency_opposition

PARTS = ("Cont.", "Oppn.")


def splits_table(entry: Entry, sets: Mapping[str, ScoredPairs], lacking: Mapping[str, str]) -> ReproducedTable:
    """OssCSE Table 2: consistent and opposed pairs of each set, and the medians that divide them.

    Args:
        entry: The table.
        sets: Scored pairs by the name of the set.
        lacking: Why other sets are not there, by name.
    """
    columns = ("Cont.", "Oppn.", "median score", "median error rate")
    rows = {}
    for name, known in SPLITS.items():
        printed = (*known.pairs, known.median_score, known.median_error_rate)
        if name in sets:
            pairs = sets[name]
            found = consistency_opposition(pairs.sentence1, pairs.sentence2, pairs.scores)
            counts = (found.consistent.sum(), (~found.consistent).sum())
            values = (*counts, found.median_score, found.median_error_rate)
            rows[name] = tuple(Cell(values=(float(v),), printed=p) for v, p in zip(values, printed, strict=True))
        else:
            cells = [Cell(printed=p) for p in printed]
            rows[name] = (Cell(printed=printed[0], missing=lacking.get(name, "no data")), *cells[1:])
    return filled(entry, columns, rows, (0, 0, 2, 4))


def split_scores_table(
    entry: Entry, scores: Mapping[str, Mapping[str, Sequence[Scores] | str]], notes: Sequence[str] = ()
) -> ReproducedTable:
    """OssCSE Table 6: Spearman times 100 on both parts of each set, a row for each set.

    Args:
        entry: The table; what it printed of each system is the weighted average.
        scores: As for `scores_table`; those of the first family are shown.
        notes: How the scores came about.
    """
    (by_label,) = list(scores.values())[:1]
    rows = {
        name: tuple(
            replace(
                cell_of(entry, by_label[system.label], f"{part}: {name}"),
                printed=_printed(system, SPLITS[name])[index],
            )
            for system in entry.systems
            for index, part in enumerate(PARTS)
        )
        for name in SPLITS
    }
    rows["weighted average"] = tuple(
        replace(cell_of(entry, by_label[system.label], part), printed=printed)
        for system in entry.systems
        for part, printed in zip(PARTS, system.printed.get(entry.families[0], (None, None)), strict=True)
    )
    columns = tuple(f"{part} {system.label}" for system in entry.systems for part in PARTS)
    return filled(entry, columns, rows, [entry.digits] * len(columns), notes)


def _printed(system: System, known: PublishedSplit) -> tuple[float | None, float | None]:
    """Return what the paper printed for SimCSE or supervised SimCSE on one set, times 100."""
    pair = {"simcse": known.unsupervised, "simcse-sup": known.supervised}.get(system.recipe)
    return (None, None) if pair is None else (round(100 * pair[0], 2), round(100 * pair[1], 2))
