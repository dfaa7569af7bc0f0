"""Reproduce a table or figure of a paper: from its entry to a table, its plots and its texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from opencse.evaluation.probes import load_probe_sts
from opencse.foundation.errors import OpencseError
from opencse.foundation.figures import NO_FIGURES, Draw, can_draw, draw_curves, save
from opencse.foundation.files import replaced, write_json, write_text
from opencse.papers.details import Detail, detail_figures, detail_listing
from opencse.papers.entries import Entry
from opencse.papers.runs import MeasuredModel, Reproduction, ScoreTask, Start, entry_measure
from opencse.papers.scores import Missing, WatchedCurves
from opencse.papers.table import (
    FamilyResults,
    ReproducedTable,
    SystemRuns,
    scores_table,
    splits_table,
)

Runs = Mapping[str, Sequence[MeasuredModel] | Missing]
"""The runs of systems, by label."""


def reproduce_entry(
    shared: Reproduction, starts: Sequence[Start], score_task: ScoreTask
) -> ReproducedTable:
    """Train and measure the systems of an entry, and write its table and plots.

    Args:
        shared: The entry, and what its runs share.
        starts: The backbones, one for each family.
        score_task: Scores a model on a task.

    Raises:
        OpencseError: The data that the entry is about is not there.
    """
    entry = shared.entry
    measured: list[tuple[Start, Runs]] = []
    for start in starts:
        measure = entry_measure(entry, shared.probe_data, shared.data, score_task)
        runs = {}
        for system in entry.systems_of(start.family):
            runs[system.label] = shared.runs_of(system, start, measure)
        measured.append((start, runs))
    if shared.data is None and entry.kind == "scores" and "Avg." in entry.columns:
        entry = on_own_pairs(entry)
    results = [
        FamilyResults(family=start.family, heading=_heading(shared, start), systems=_scores(runs))
        for start, runs in measured
    ]
    table = scores_table(entry, results, _notes(shared, starts))
    done = _done(shared, measured)
    details: dict[str, Detail] = {}
    for label, found in done.items():
        detail = found[0].detail
        if detail is not None:
            details[label] = detail
    if can_draw():
        _draw(entry, done, details, shared.out)
    elif entry.plot or entry.kind in ("curves", "projection"):
        shared.notify(NO_FIGURES)
    return written(replace(table, listing=detail_listing(entry, details)), shared.out)


def reproduce_splits(entry: Entry, data: str | Path | None, out: Path) -> ReproducedTable:
    """Write a table about the STS sets alone, for which no system is needed.

    Raises:
        OpencseError: There is no data.
    """
    if data is None:
        raise OpencseError(f"{entry.name} is about the STS sets", "Pass --data.")
    _, sets, missing = load_probe_sts(data)
    by_name = {pairs.name: pairs for pairs in sets}
    return written(splits_table(entry, by_name, missing), out)


def on_own_pairs(entry: Entry) -> Entry:
    """Return an entry with its average alone: opencse's own pairs have no STS tasks."""
    systems = []
    for system in entry.systems:
        printed = {family: values[-1:] for family, values in system.printed.items()}
        systems.append(replace(system, printed=printed))
    note = f"{entry.note} Scored on opencse's own pairs.".strip()
    return replace(entry, columns=("Avg.",), systems=tuple(systems), note=note)


def _scores(runs: Runs) -> dict[str, SystemRuns]:
    """Return what was measured of each system."""
    scores: dict[str, SystemRuns] = {}
    for label, found in runs.items():
        scores[label] = found if isinstance(found, Missing) else [run.scores for run in found]
    return scores


def _heading(shared: Reproduction, start: Start) -> str:
    """Return what stands for a family in labels: a small run has another backbone than the paper's."""
    if shared.scale == "full":
        return start.family
    return f"{start.family}: {start.backbone}"


def _done(
    shared: Reproduction, measured: Sequence[tuple[Start, Runs]]
) -> dict[str, Sequence[MeasuredModel]]:
    """Return the runs of all systems that could be measured, by their labels in the table."""
    done: dict[str, Sequence[MeasuredModel]] = {}
    for start, runs in measured:
        for label, found in runs.items():
            if isinstance(found, Missing):
                continue
            if len(measured) > 1:
                label = f"{label}, {_heading(shared, start)}"
            done[label] = found
    return done


def _draw(
    entry: Entry,
    done: Mapping[str, Sequence[MeasuredModel]],
    details: Mapping[str, Detail],
    out: Path,
) -> None:
    """Write the plots of an entry: what the models gave, or for each column its curves."""
    plots: dict[str, Draw] = dict(detail_figures(entry, details))
    if entry.kind == "curves":
        for title in entry.columns:
            curves = {}
            for label, runs in done.items():
                watched = [run.measured for run in runs if isinstance(run.measured, WatchedCurves)]
                curves[label] = [each.curves[title] for each in watched]
            suffix = title.rstrip(".").lower().replace(" ", "-")
            plots[f"-{suffix}"] = partial(draw_curves, curves, title)
    for suffix, draw in plots.items():
        for kind in ("svg", "png"):
            with replaced(out / f"{entry.name}{suffix}.{kind}") as temporary:
                save(draw, temporary, kind=kind)


def _notes(shared: Reproduction, starts: Sequence[Start]) -> list[str]:
    """Return how the runs came about."""
    # Of a setting that is given twice the last one counts.
    settings = {text.partition("=")[0]: text for text in shared.overrides}
    listed = ", ".join(settings.values()) or "the recipes' own"
    seeds = ", ".join("the recipe's own" if seed is None else str(seed) for seed in shared.seeds)
    corpus = shared.corpus.name
    if shared.triplets is not None:
        corpus += f", triplets {shared.triplets.name}"
    notes = [
        f"Scale {shared.scale}, {shared.variant}; seeds {seeds}; corpus {corpus}; settings: {listed}."
    ]
    stands = [f"{s.backbone} with the settings of {s.settings}" for s in starts if s.stands_in]
    if stands:
        notes.append(
            f"Trained from {', '.join(stands)}, in place of the paper's teachers, generators and the like too."
        )
    return notes


def written(table: ReproducedTable, out: Path) -> ReproducedTable:
    """Write a table as Markdown and JSON, and return it."""
    write_text(out / f"{table.entry}.md", table.markdown())
    write_json(out / f"{table.entry}.json", asdict(table))
    return table
