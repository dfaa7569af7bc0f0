"""`opencse.reproduce`: a table or figure of a paper from one command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import typer

from opencse.commands.measuring_options import ReproduceOptions
from opencse.commands.option_fields import takes
from opencse.commands.reports.curves import draw_curves
from opencse.commands.reports.drawing import save
from opencse.commands.reproduced_models import model_measure
from opencse.commands.reproduced_runs import Measured, SharedSettings, measure_system
from opencse.commands.reproduction import (
    Entry,
    ReproducedTable,
    entry_names,
    load_entry,
    scores_table,
    split_scores_table,
    splits_table,
)
from opencse.commands.reproduction.details import Detail, detail_figures, detail_listing
from opencse.commands.reproduction.figures import draw_table
from opencse.evaluation.development import sts_text
from opencse.evaluation.probes import load_probe_data, load_probe_sts
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import write_json, write_text
from opencse.foundation.progress import note
from opencse.foundation.result_table import Table, show
from opencse.text import demo
from opencse.text.corpus import Corpus

FULL = {
    "bert-base": "bert-base-uncased",
    "bert-large": "bert-large-uncased",
    "roberta-base": "roberta-base",
    "roberta-large": "roberta-large",
}
"""The backbones of the papers, by family."""
SMALL = "mini-mlm"
"""The backbone of a small run, which stands for the first family of a table."""
SMALL_SETTINGS = ("training.epochs=1", "training.max_steps=200", "training.batch_size=64", "selection.every=50")
"""Settings of a small run; a setting in which the compared systems differ must not be among them."""


@takes(ReproduceOptions)
def reproduce(options: ReproduceOptions) -> ReproducedTable:
    """Reproduce a table.

    Returns:
        The table; an empty cell gives the reason.

    Raises:
        OpencseError: There is no such table, or the data or the corpus cannot be read.
    """
    if options.table is None:
        raise OpencseError("no table is named", "`opencse reproduce` lists them.")
    entry, out, data, scale = load_entry(options.table), Path(options.out), options.data, options.scale
    if entry.kind == "splits" and not entry.systems:
        if data is None:
            raise OpencseError(f"{options.table} is about the STS sets", "Pass --data.")
        sets = load_probe_sts(data, text=sts_text(data))
        return _written(splits_table(entry, {pairs.name: pairs for pairs in sets.split_sets}, sets.missing), out)
    pairs = [] if data is not None else [demo.pairs("demo")]
    shared = SharedSettings(
        out=out,
        corpus=Corpus(demo.corpus(options.corpus)),
        data=None if data is None else str(data),
        probe_data=load_probe_data(data=data, pairs=pairs, text=sts_text(data)),
        overrides=(*(SMALL_SETTINGS if scale == "small" else ()), *options.overrides),
        paraphrases=None if options.paraphrases is None else Path(options.paraphrases),
        triplets=None if options.triplets is None else Corpus(Path(options.triplets)),
        progress=options.progress,
        notify=options.notify,
    )
    chosen = list(options.seeds) if options.seeds else [1] if scale == "small" else list(range(1, entry.seeds + 1))
    measured: dict[str, dict[str, list[Measured] | str]] = {}
    for family in entry.families[:1] if scale == "small" else entry.families:
        backbone = SMALL if scale == "small" else FULL[family]
        key = f"{family}: {backbone}" if scale == "small" else family
        measure_model = model_measure(entry, shared.probe_data, shared.data)
        measured[key] = {
            s.label: measure_system(entry, s, backbone, chosen, shared, measure_model) for s in entry.systems_of(family)
        }
    if data is None and entry.kind == "scores" and "Avg." in entry.columns:
        entry = _on_written_pairs(entry)
    scores = {
        key: {label: runs if isinstance(runs, str) else [run.scores for run in runs] for label, runs in found.items()}
        for key, found in measured.items()
    }
    fill = split_scores_table if entry.kind == "splits" else scores_table
    reproduced = fill(entry, scores, _notes(shared, scale, chosen))
    details = _details(measured)
    _draw(entry, reproduced, measured, details, out)
    return _written(replace(reproduced, listing=detail_listing(entry, details)), out)


def command(options: ReproduceOptions) -> None:
    """Reproduce a table and print it, or list the tables."""
    if options.table is None:
        show(Table(("table", "title"), [(name, load_entry(name).title) for name in entry_names()]))
        return
    try:
        seeds = None if options.seeds is None else [int(seed) for seed in options.seeds.split(",")]
    except ValueError:
        raise OpencseError(f"--seeds {options.seeds}: expected numbers", "Such as --seeds 1,2,3.") from None
    typer.echo(reproduce(**{**vars(options), "seeds": seeds, "notify": note}).markdown(), nl=False)


def _details(measured: Mapping[str, Mapping[str, list[Measured] | str]]) -> dict[str, Detail]:
    """Return by label what the first seed's model of each system gave."""
    return {
        label if len(measured) == 1 else f"{label}, {key}": runs[0].detail
        for key, found in measured.items()
        for label, runs in found.items()
        if not isinstance(runs, str) and runs[0].detail is not None
    }


def _draw(
    entry: Entry,
    table: ReproducedTable,
    measured: Mapping[str, Mapping[str, list[Measured] | str]],
    details: Mapping[str, Detail],
    out: Path,
) -> None:
    """Write the plots of an entry: the table, what the models gave, or for each column its curves."""
    path = out / entry.name
    path.parent.mkdir(parents=True, exist_ok=True)
    if entry.plot in ("lines", "points"):
        save(partial(draw_table, table, joined=entry.plot == "lines"), path)
    for suffix, draw in detail_figures(entry, details).items():
        save(draw, path.with_name(f"{path.name}{suffix}"))
    if entry.kind == "curves":
        for column in entry.columns:
            curves = {
                label if len(measured) == 1 else f"{label}, {key}": [run.curves[column] for run in runs if run.curves]
                for key, found in measured.items()
                for label, runs in found.items()
                if not isinstance(runs, str)
            }
            name = f"{path.name}-{column.rstrip('.').lower().replace(' ', '-')}"
            save(partial(draw_curves, curves, column), path.with_name(name))


def _on_written_pairs(entry: Entry) -> Entry:
    """Return the table on the pairs that come with opencse, for users without STS data."""
    systems = tuple(
        replace(system, printed={family: printed[-1:] for family, printed in system.printed.items()})
        for system in entry.systems
    )
    return replace(
        entry, columns=("Avg.",), systems=systems, note=f"{entry.note} Scored on opencse's own pairs.".strip()
    )


def _notes(shared: SharedSettings, scale: str, seeds: Sequence[int]) -> list[str]:
    settings = ", ".join(shared.overrides) or "the recipes' own"
    corpus = shared.corpus.name + (f", triplets {shared.triplets.name}" if shared.triplets is not None else "")
    return [f"Scale {scale}; seeds {', '.join(map(str, seeds))}; corpus {corpus}; settings: {settings}."]


def _written(table: ReproducedTable, out: Path) -> ReproducedTable:
    write_text(out / f"{table.entry}.md", table.markdown())
    write_json(out / f"{table.entry}.json", table.plain())
    return table
