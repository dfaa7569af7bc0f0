"""`opencse.build`: the text columns of a recipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields
from pathlib import Path

import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table
from sentence_transformers import SentenceTransformer

from opencse.commands.option_fields import takes
from opencse.commands.options import BuildCommand, BuildOptions
from opencse.encoder.backbone import Backbone
from opencse.encoder.names import resolve
from opencse.evaluation import read_pairs
from opencse.foundation.errors import OpencseError
from opencse.foundation.progress import note
from opencse.foundation.workers import Engine, Local, Ray
from opencse.recipes import load_recipe
from opencse.recipes.rows.columns import chosen_specs, with_models
from opencse.text import demo
from opencse.text.language import ENOUGH_TEXTS
from opencse.text.languages import choose_language
from opencse.text.mined import draw_report
from opencse.text.user_text import open_corpus
from opencse.text.views.pair_statistics import PUBLISHED, bar_chart, pair_statistics
from opencse.text.views.registry import ConstructorSpec, build_views


@takes(BuildOptions)
def build(options: BuildOptions) -> Path:
    """Build text columns.

    Returns:
        The folder.

    Raises:
        OpencseError: The recipe builds no column, or one cannot be built; the message says how to fix it.
    """
    backbone = Backbone(options.backbone)
    asked = {"family": options.family or backbone.family, "variant": options.variant}
    loaded = load_recipe(options.recipe, **asked, overrides=options.overrides)
    if not loaded.build:
        raise OpencseError(f"the recipe {options.recipe} builds no column", "It trains on the sentences as they are.")
    specs = chosen_specs(loaded.build, options.only) if options.only else loaded.build
    for name, spec in specs.items():
        if (model := getattr(spec, "model", None)) in loaded.first_stages:
            raise OpencseError(
                f"build.{name} mines with '{model}', which `opencse run` trains first",
                f"Use `opencse run`, or give a trained model: --set build.{name}.model=PATH.",
            )
    text = open_corpus(options.corpus, column=options.column)
    language = choose_language(loaded.corpus.language, text.first_texts(ENOUGH_TEXTS), loaded.corpus.syntax)
    if line := language.line(specs):
        options.notify(line)
    built = build_views(
        text.path,
        language.pack.localise(with_models(specs, {"backbone": backbone})),
        options.out,
        seed=options.seed,
        engine=options.engine,
        resume=options.resume,
        progress=options.progress,
        notify=options.notify,
    )
    for line in _built_lines(built, specs):
        options.notify(line)
    return built


def command(options: BuildCommand) -> None:
    """Build, and print statistics of the pairs if they are asked for."""
    asked = {each.name: getattr(options, each.name) for each in fields(BuildOptions)}
    build(**{**asked, "engine": _engine(options), "notify": note})
    if options.stats:
        _show_statistics(str(options.out), options.model)
        _show_draws(str(options.out), options.pairs, options.near)


def _engine(options: BuildCommand) -> Engine:
    if options.engine == "ray":
        return Ray(address=options.address, processes=options.workers)
    if options.address:
        raise OpencseError("--address goes with --engine ray", "Add --engine ray, or leave the address out.")
    return Local(processes=options.workers)


def _built_lines(built: Path, specs: Mapping[str, ConstructorSpec]) -> Iterator[str]:
    """Yield a summary of the built columns, and a warning about empty ones."""
    columns = [column for name, spec in specs.items() for column in spec.columns(name)]
    table = pq.read_table(sorted(built.glob("part-*.parquet")), columns=columns)
    present = {column: len(table) - table[column].null_count for column in columns}
    shares = ", ".join(f"{column} {count:,}" for column, count in present.items())
    yield f"{len(table):,} sentences in {built}; sentences by column: {shares}"
    empty = [column for column, count in present.items() if not count]
    if empty:
        yield f"warning: no sentence has {', '.join(empty)}"


def _show_statistics(views: str, model: str | None) -> None:
    encode = None
    if model is not None:
        encode = SentenceTransformer(resolve(model), trust_remote_code=False).encode
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
