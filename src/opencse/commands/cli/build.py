"""`opencse build`: the text columns of a recipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from opencse.commands.cli import options
from opencse.foundation import progress

if TYPE_CHECKING:
    from opencse.foundation.workers import Engine


def build(
    recipe: options.Recipe,
    corpus: options.Corpus,
    out: options.Out,
    variant: options.Variant = "sound",
    overrides: options.Overrides = [],  # noqa: B006
    seed: Annotated[int, typer.Option(help="Seed of all sampling.")] = 0,
    workers: Annotated[
        int | None, typer.Option(help="Processes; one per core by default. The output is the same.")
    ] = None,
    column: options.Column = None,
    only: Annotated[
        list[str],
        typer.Option(help="Build only this column and those that it is made from; repeatable. All by default."),
    ] = [],  # noqa: B006
    resume: Annotated[
        bool, typer.Option("--resume/--overwrite", help="Keep finished parts, or replace what OUT holds.")
    ] = True,
    backbone: Annotated[str, typer.Option(help="The model to be trained, for recipes that mine with it.")] = "minilm",
    engine: Annotated[
        str,
        typer.Option(help="`local`, or `ray`: a cluster whose machines see the same files. The output is the same."),
    ] = "local",
    address: Annotated[
        str,
        typer.Option(
            help="With --engine ray: address of a running cluster, or `auto`. By default Ray starts on this machine."
        ),
    ] = "",
    stats: Annotated[
        bool, typer.Option("--stats", help="Then show overlap and cosine of the pairs, beside published figures.")
    ] = False,
    model: Annotated[
        str | None, typer.Option(help="With --stats: an embedding model for cosines: folder, hub id, or minilm.")
    ] = None,
    pairs: Annotated[
        str | None,
        typer.Option(help="With --stats: scored pairs, to count mined negatives that are known near-duplicates."),
    ] = None,
    near: Annotated[float, typer.Option(help="With --pairs: the minimum score of near-duplicates.")] = 4.0,
    device: options.Device = "auto",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Build the text columns of a recipe: negations, paraphrases, substitutions, ...

    Writes OUT/part-00000-of-….parquet with id, text, and for each column its sentence (null if there is none), its
    rule and its scores. An interrupted build continues where it stopped.
    """
    options.begin(device, quiet=quiet, verbose=verbose)
    from opencse.commands.build import build as run

    run(
        recipe,
        corpus,
        out,
        only=only,
        backbone=backbone,
        variant=variant,
        overrides=overrides,
        seed=seed,
        column=column,
        engine=_engine(engine, address, workers),
        resume=resume,
        notify=progress.note,
    )
    if stats:
        _show_statistics(str(out), model)
        _show_draws(str(out), pairs, near)


def _engine(name: str, address: str, workers: int | None) -> Engine:
    from opencse.foundation.errors import OpencseError
    from opencse.foundation.workers import Local, Ray

    if name not in ("local", "ray"):
        raise OpencseError(f"--engine {name}: no such engine", "Use local or ray.")
    if name == "local" and address:
        raise OpencseError("--address goes with --engine ray", "Add --engine ray, or leave the address out.")
    return Ray(address=address, processes=workers) if name == "ray" else Local(processes=workers)


def _show_statistics(views: str, model: str | None) -> None:
    from rich.console import Console
    from rich.table import Table

    from opencse.text.views.pair_statistics import PUBLISHED, bar_chart, pair_statistics

    encode = None
    if model is not None:
        from sentence_transformers import SentenceTransformer

        from opencse.encoder.names import resolve

        encode = SentenceTransformer(resolve(model)).encode
    found = pair_statistics(views, encode=encode)
    console = Console()
    table = Table(title="Pairs of each sentence with its views")
    for head in ("column", "rows", "null", "overlap", "0 → 1", "MER", "0 → 1", "cosine", "-1 → 1"):
        table.add_column(head, justify="right" if head in ("rows", "null") else "left")
    for column in found:
        cells = [column.column, str(column.rows), f"{100 * column.nulls / max(column.rows, 1):.1f} %"]
        for distribution in (column.overlap, column.error_rate, column.cosine):
            cells += [f"{distribution.mean:.3f}", bar_chart(distribution)] if distribution else ["", ""]
        table.add_row(*cells)
    console.print(table)
    published = Table(title="Mean lexical overlap as published (DebCSE, Tables 1 and 4)")
    for head in ("training pairs", "positive", "negative"):
        published.add_column(head)
    for name, (positive, negative) in PUBLISHED.items():
        published.add_row(name, f"{positive:.2f}", f"{negative:.2f}")
    console.print(published)
    for column in found:
        if column.rules:
            rules = ", ".join(f"{rule} {count}" for rule, count in column.rules.items())
            console.print(f"{column.column}: {rules}", markup=False)


def _show_draws(views: str, pairs: str | None, near: float) -> None:
    from rich.console import Console
    from rich.table import Table

    from opencse.evaluation import read_pairs
    from opencse.text import demo
    from opencse.text.mined import draw_report

    known = []
    if pairs is not None:
        scored = read_pairs(demo.pairs(pairs))
        known = list(zip(scored.sentence1, scored.sentence2, scored.scores, strict=True))
    found = draw_report(views, pairs=known, near=near)
    if not found:
        return
    table = Table(title="Drawn sentences: mean (5th to 95th percentile)")
    for head in ("column", "drawn", "cosine", "MER", "overlap", *(["scored", f"score ≥ {near:g}"] if known else [])):
        table.add_column(head)
    for column in found:
        cells = [column.column, f"{column.drawn} of {column.rows}"]
        for measure, values in column.quantiles.items():
            cells.append(f"{column.mean[measure]:.3f} ({values[0]:.2f} to {values[-1]:.2f})")
        cells += [""] * (5 - len(cells))
        table.add_row(*cells, *([str(column.known), str(column.near_duplicates)] if known else []))
    Console().print(table)
