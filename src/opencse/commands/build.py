"""`opencse.build`: the text columns of a recipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow.parquet as pq

from opencse.commands.command_line import apply, takes
from opencse.commands.options import BuildCommand, BuildOptions
from opencse.encoder.backbone import Backbone
from opencse.foundation.errors import OpencseError
from opencse.foundation.progress import progress_shown
from opencse.foundation.result_table import Cell, Number, Table, show
from opencse.foundation.workers import Engine, Local, Ray
from opencse.recipes import load_recipe
from opencse.recipes.rows.prepare import chosen_specs, skipped_lines, with_models
from opencse.text.language import ENOUGH_TEXTS
from opencse.text.languages import choose_language
from opencse.text.user_text import UserText
from opencse.text.views.builder import build_views
from opencse.text.views.constructor import ConstructorSpec
from opencse.text.views.pair_statistics import PUBLISHED, pair_statistics


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
    text = UserText(options.corpus, options.column).corpus()
    language = choose_language(loaded.corpus.language, text.first_texts(ENOUGH_TEXTS), loaded.corpus.syntax)
    if line := language.line(specs):
        options.notify(line)
    localised = language.pack.localise(with_models(specs, {"backbone": backbone}))
    with progress_shown(options.progress):
        built = build_views(
            text.path,
            localised,
            options.out,
            seed=options.seed,
            engine=options.engine,
            resume=options.resume,
            models=[backbone],
        )
    for line in _built_lines(built, specs):
        options.notify(line)
    return built


def command(options: BuildCommand) -> None:
    """Build, and print statistics of the pairs if they are asked for."""
    apply(build, replace(options, engine=_engine(options)))
    if options.stats:
        show(*statistics_tables(options.out))


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
    yield from skipped_lines(built, specs)


def statistics_tables(views: str | Path) -> Iterator[Table]:
    """Yield overlap and recorded cosines of the pairs in a folder of built views, and the published figures."""
    rows: list[list[Cell]] = []
    notes = []
    for column in pair_statistics(views):
        row: list[Cell] = [column.column, column.rows, Number(100 * column.nulls / max(column.rows, 1), 1, " %")]
        for values in (column.overlap, column.error_rate, column.cosine):
            row += [Number(values.mean, 3), values.bar_chart()] if values else ["", ""]
        rows.append(row)
        if column.rules:
            notes.append(f"{column.column}: {', '.join(f'{rule} {count:,}' for rule, count in column.rules.items())}")
    heads = ("column", "rows", "null", "overlap", "0 → 1", "MER", "0 → 1", "cosine", "-1 → 1")
    yield Table(heads, rows, "Pairs of each sentence with its views", notes)
    published = [(name, Number(values[0]), Number(values[1])) for name, values in PUBLISHED.items()]
    title = "Mean lexical overlap as published (DebCSE, Tables 1 and 4)"
    yield Table(("training pairs", "positive", "negative"), published, title)
