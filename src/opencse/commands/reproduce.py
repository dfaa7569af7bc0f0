"""`opencse.reproduce`: a table or figure of a paper from one command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

from opencse.commands.command_line import apply, takes
from opencse.commands.options import ReproduceOptions
from opencse.evaluation.probes import load_probe_data, load_probe_sts
from opencse.foundation.errors import OpencseError
from opencse.foundation.figures import NO_FIGURES, can_draw, draw_curves, save
from opencse.foundation.files import replaced, write_json, write_text
from opencse.foundation.result_table import Table, show
from opencse.foundation.terminal import print_text
from opencse.foundation.toml_tables import unknown_name_error
from opencse.papers.details import Detail, detail_figures, detail_listing
from opencse.papers.entries import (
    Entry,
    ReproducedTable,
    entry_names,
    load_entry,
    scores_table,
    splits_table,
)
from opencse.papers.runs import Reproduction, Start, StoredRun, entry_measure
from opencse.text.corpus import Corpus, demo_path
from opencse.training.run_groups import parse_seeds

FULL = {
    "bert-base": "bert-base-uncased",
    "bert-large": "bert-large-uncased",
    "roberta-base": "roberta-base",
    "roberta-large": "roberta-large",
}
"""The backbones of the papers, by family."""
SMALL = "mini-mlm"
"""The backbone of a small run, which stands for the first family of a table."""
SMALL_SETTINGS = (
    "training.epochs=1",
    "training.max_steps=200",
    "training.batch_size=64",
    "selection.every=50",
)
"""Settings of a small run; a setting in which the compared systems differ must not be among them."""


@takes(ReproduceOptions)
def reproduce(options: ReproduceOptions) -> ReproducedTable:
    """Reproduce a table.

    Returns:
        The table; an empty cell gives the reason.

    Raises:
        OpencseError: There is no such table or family, the data or the corpus cannot be read, or
            there is no corpus for `full`.
    """
    if options.table is None:
        raise OpencseError("no table is named", "`opencse reproduce` lists them.")
    entry, out, data, full = (
        load_entry(options.table),
        Path(options.out),
        options.data,
        options.scale == "full",
    )
    if entry.kind == "splits" and not entry.systems:
        if data is None:
            raise OpencseError(f"{options.table} is about the STS sets", "Pass --data.")
        _, sets, missing = load_probe_sts(data)
        return _written(splits_table(entry, {pairs.name: pairs for pairs in sets}, missing), out)
    starts = _starts(entry, options)
    rows = [(start, system) for start in starts for system in entry.systems_of(start.family)]
    if (
        full
        and options.corpus == "demo"
        and any(row.recipe and start.family not in row.model for start, row in rows)
    ):
        raise OpencseError("--scale full does not train on the sample sentences", "Pass --corpus.")
    pairs = [] if data is not None else ["demo"]
    shared = Reproduction(
        entry=entry,
        options=options,
        overrides=(*(() if full else SMALL_SETTINGS), *options.overrides),
        variant=options.variant or ("faithful" if full else "sound"),
        seeds=options.seeds
        or ([1] if not full else [None] if entry.seeds == 1 else range(1, entry.seeds + 1)),
        corpus=Corpus(demo_path(options.corpus, "sentences.txt")),
        triplets=None if options.triplets is None else Corpus(Path(options.triplets)),
        probe_data=load_probe_data(data=data, pairs=pairs, sentences=options.sentences),
    )
    measured: dict[str, dict[str, list[StoredRun] | str]] = {}  # why not, in place of runs
    for start in starts:
        measure = entry_measure(entry, shared.probe_data, data)
        measured[start.family if full else f"{start.family}: {start.backbone}"] = {
            system.label: shared.measure(system, start, measure)
            for system in entry.systems_of(start.family)
        }
    if data is None and entry.kind == "scores" and "Avg." in entry.columns:
        systems = tuple(
            replace(
                system, printed={family: printed[-1:] for family, printed in system.printed.items()}
            )
            for system in entry.systems
        )
        note = f"{entry.note} Scored on opencse's own pairs.".strip()
        entry = replace(entry, columns=("Avg.",), systems=systems, note=note)
    scores = {
        key: {
            label: runs if isinstance(runs, str) else [run.scores for run in runs]
            for label, runs in group.items()
        }
        for key, group in measured.items()
    }
    reproduced = scores_table(entry, scores, _notes(shared, starts))
    done = {
        label if len(measured) == 1 else f"{label}, {key}": runs
        for key, group in measured.items()
        for label, runs in group.items()
        if not isinstance(runs, str)
    }
    details = {label: runs[0].detail for label, runs in done.items() if runs[0].detail is not None}
    if can_draw():
        _draw(entry, done, details, out)
    elif entry.plot or entry.kind in ("curves", "projection"):
        options.notify(NO_FIGURES)
    return _written(replace(reproduced, listing=detail_listing(entry, details)), out)


def command(options: ReproduceOptions) -> None:
    """Reproduce a table and print it, or list the tables."""
    if options.table is None:
        show(Table(("table", "title"), [(name, load_entry(name).title) for name in entry_names()]))
        return
    seeds = None if options.seeds is None else parse_seeds(options.seeds)
    print_text(apply(reproduce, replace(options, seeds=seeds)).markdown(), end="")


def _starts(entry: Entry, options: ReproduceOptions) -> list[Start]:
    """Return the backbones of a reproduction, one for each family."""
    given = dict(backbone.partition("=")[::2] for backbone in options.backbone)
    for family in (*given, *([] if options.family is None else [options.family])):
        if family not in entry.families:
            raise unknown_name_error("family", family, entry.families, entry.name)
    if bare := [family for family, backbone in given.items() if not backbone]:
        raise OpencseError(
            f"--backbone {bare[0]}: which model?", f"Write --backbone {bare[0]}=PATH."
        )
    if options.scale == "full":
        families = entry.families if options.family is None else (options.family,)
        return [
            Start(backbone=given.get(family, FULL[family]), family=family, settings=family)
            for family in families
        ]
    families = (options.family,) if options.family else tuple(given) or entry.families[:1]
    published = bool(options.family or given)
    return [
        Start(backbone=given.get(f, SMALL), family=f, settings=f if published else "")
        for f in families
    ]


def _draw(
    entry: Entry, done: Mapping[str, list[StoredRun]], details: Mapping[str, Detail], out: Path
) -> None:
    """Write the plots of an entry: what the models gave, or for each column its curves."""
    plots = detail_figures(entry, details)
    if entry.kind == "curves":
        for column in entry.columns:
            curves = {
                label: [run.curves[column] for run in runs if run.curves]
                for label, runs in done.items()
            }
            plots[f"-{column.rstrip('.').lower().replace(' ', '-')}"] = partial(
                draw_curves, curves, column
            )
    for suffix, draw in plots.items():
        with replaced(out / f"{entry.name}{suffix}.svg") as temporary:
            save(draw, temporary)


def _notes(shared: Reproduction, starts: Sequence[Start]) -> list[str]:
    settings = (
        ", ".join({text.partition("=")[0]: text for text in shared.overrides}.values())
        or "the recipes' own"
    )
    seeds = ", ".join("the recipe's own" if seed is None else str(seed) for seed in shared.seeds)
    corpus = shared.corpus.name + (
        f", triplets {shared.triplets.name}" if shared.triplets is not None else ""
    )
    notes = [
        f"Scale {shared.options.scale}, {shared.variant}; seeds {seeds}; corpus {corpus}; settings: {settings}."
    ]
    stands = [f"{s.backbone} with the settings of {s.settings}" for s in starts if s.stands_in]
    if stands:
        notes.append(
            f"Trained from {', '.join(stands)}, in place of the paper's teachers, generators and the like too."
        )
    return notes


def _written(table: ReproducedTable, out: Path) -> ReproducedTable:
    write_text(out / f"{table.entry}.md", table.markdown())
    write_json(out / f"{table.entry}.json", asdict(table))
    return table
