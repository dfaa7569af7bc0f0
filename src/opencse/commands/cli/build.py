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
        from opencse.commands.display import draws_table, statistics_tables
        from opencse.foundation.result_table import show

        drawn = draws_table(out, pairs, near)
        show(*statistics_tables(out, model), *([] if drawn is None else [drawn]))


def _engine(name: str, address: str, workers: int | None) -> Engine:
    from opencse.foundation.errors import OpencseError
    from opencse.foundation.workers import Local, Ray

    if name not in ("local", "ray"):
        raise OpencseError(f"--engine {name}: no such engine", "Use local or ray.")
    if name == "local" and address:
        raise OpencseError("--address goes with --engine ray", "Add --engine ray, or leave the address out.")
    return Ray(address=address, processes=workers) if name == "ray" else Local(processes=workers)
