"""`opencse build`: from raw sentences to the related sentences that a recipe learns from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from opencse import progress
from opencse.cli import options

if TYPE_CHECKING:
    from opencse.engines import Engine


def build(
    recipe: options.Recipe,
    corpus: options.Corpus,
    out: options.Out,
    variant: options.Variant = "sound",
    overrides: options.Overrides = [],  # noqa: B006
    seed: Annotated[int, typer.Option(help="The only source of chance.")] = 0,
    workers: Annotated[
        int | None, typer.Option(help="Processes; one per core by default. The output is the same.")
    ] = None,
    column: options.Column = None,
    only: Annotated[
        list[str], typer.Option(help="Build this column (and those it needs) alone; repeatable. All by default.")
    ] = [],  # noqa: B006
    resume: Annotated[
        bool, typer.Option("--resume/--overwrite", help="Keep finished parts, or replace what OUT holds.")
    ] = True,
    backbone: Annotated[
        str, typer.Option(help="For recipes that mine with the model that will be trained: that model.")
    ] = "minilm",
    engine: Annotated[
        str,
        typer.Option(help="`local`, or `ray`: a cluster whose machines see the same files. The output is the same."),
    ] = "local",
    address: Annotated[
        str, typer.Option(help="With --engine ray: of a running cluster, or `auto`. Without it Ray starts here.")
    ] = "",
    stats: Annotated[
        bool, typer.Option("--stats", help="Then report how the pairs are distributed, beside the papers' figures.")
    ] = False,
    model: Annotated[
        str | None, typer.Option(help="With --stats: an embedding model for cosines: folder, hub id, or minilm.")
    ] = None,
    pairs: Annotated[
        str | None,
        typer.Option(help="With --stats: scored pairs; counts the mined negatives that are known near-duplicates."),
    ] = None,
    near: Annotated[float, typer.Option(help="With --pairs: the score from which two sentences mean the same.")] = 4.0,
    device: options.Device = "auto",
    quiet: options.Quiet = False,
    verbose: options.Verbose = False,
) -> None:
    """Build the text columns of a recipe: negations, paraphrases, substitutions, ...

    Writes OUT/part-00000-of-….parquet with id, text, and for each column its sentence (null where there is none), its
    rule and its scores. A build that was stopped goes on where it was.
    """
    options.begin(device, quiet=quiet, verbose=verbose)
    from opencse.pipeline.build import build as run

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
    from opencse.engines import Local, Ray
    from opencse.errors import OpencseError

    if name not in ("local", "ray"):
        raise OpencseError(f"--engine {name}: no such engine", "Use local or ray.")
    if name == "local" and address:
        raise OpencseError("--address goes with --engine ray", "Add --engine ray, or leave the address out.")
    return Ray(address=address, processes=workers) if name == "ray" else Local(processes=workers)


def _show_statistics(views: str, model: str | None) -> None:
    from rich.console import Console
    from rich.table import Table

    from opencse.views.pair_statistics import PUBLISHED, bars, statistics

    encode = None
    if model is not None:
        from sentence_transformers import SentenceTransformer

        from opencse.models import resolve

        encode = SentenceTransformer(resolve(model)).encode
    found = statistics(views, encode=encode)
    console = Console()
    table = Table(title="Pairs of each sentence with its views")
    for head in ("column", "rows", "null", "overlap", "0 → 1", "MER", "0 → 1", "cosine", "-1 → 1"):
        table.add_column(head, justify="right" if head in ("rows", "null") else "left")
    for one in found:
        cells = [one.column, str(one.rows), f"{100 * one.nulls / max(one.rows, 1):.1f} %"]
        for distribution in (one.overlap, one.error_rate, one.cosine):
            cells += [f"{distribution.mean:.3f}", bars(distribution)] if distribution else ["", ""]
        table.add_row(*cells)
    console.print(table)
    published = Table(title="Mean lexical overlap as published (DebCSE, Tables 1 and 4)")
    for head in ("training pairs", "positive", "negative"):
        published.add_column(head)
    for name, (positive, negative) in PUBLISHED.items():
        published.add_row(name, f"{positive:.2f}", f"{negative:.2f}")
    console.print(published)
    for one in found:
        if one.rules:
            rules = ", ".join(f"{rule} {count}" for rule, count in one.rules.items())
            console.print(f"{one.column}: {rules}", markup=False)


def _show_draws(views: str, pairs: str | None, near: float) -> None:
    from rich.console import Console
    from rich.table import Table

    from opencse.evaluation import read_pairs
    from opencse.io import demo
    from opencse.views.mining import draw_report

    known = []
    if pairs is not None:
        scored = read_pairs(demo.pairs(pairs))
        known = list(zip(scored.sentence1, scored.sentence2, scored.scores, strict=True))
    found = draw_report(views, pairs=known, near=near)
    if not found:
        return
    table = Table(title="Drawn sentences: mean (5 % to 95 % of them)")
    for head in ("column", "drawn", "cosine", "MER", "overlap", *(["scored", f"score ≥ {near:g}"] if known else [])):
        table.add_column(head)
    for one in found:
        cells = [one.column, f"{one.drawn} of {one.rows}"]
        for form, values in one.quantiles.items():
            cells.append(f"{one.mean[form]:.3f} ({values[0]:.2f} to {values[-1]:.2f})")
        cells += [""] * (5 - len(cells))
        table.add_row(*cells, *([str(one.known), str(one.near_duplicates)] if known else []))
    Console().print(table)
