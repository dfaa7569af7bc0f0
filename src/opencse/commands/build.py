"""`opencse.build`: the text columns of a recipe."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from opencse.commands.command_line import apply, takes
from opencse.commands.options import BuildCommand, BuildOptions
from opencse.encoder.backbone import Backbone
from opencse.foundation.errors import OpencseError
from opencse.foundation.progress import progress_shown
from opencse.foundation.result_table import Cell, Number, Table, show
from opencse.foundation.workers import Local, Ray
from opencse.recipes import Recipe, load_recipe
from opencse.recipes.load import adapt_recipe
from opencse.recipes.rows.prepare import chosen_specs, skipped_lines, with_models
from opencse.text.documents import likely_language
from opencse.text.languages import ENOUGH_TEXTS, choose_language
from opencse.text.user_text import UserText
from opencse.text.views.builder import build_views

_SCORES = {"mer": "match error rate", "overlap": "lexical overlap", "cosine": "cosine"}


@takes(BuildOptions)
def build(options: BuildOptions) -> Path:
    """Build text columns.

    Returns:
        The folder.

    Raises:
        OpencseError: The recipe builds no column, or one cannot be built; the message tells how to
            fix it.
    """
    backbone = Backbone(options.backbone)
    selection = {"family": backbone.family, "variant": options.variant}
    if isinstance(options.recipe, Recipe):
        loaded = adapt_recipe(options.recipe, **selection, overrides=options.overrides)
    else:
        loaded = load_recipe(options.recipe, **selection, overrides=options.overrides)
    if not loaded.build:
        raise OpencseError(
            f"the recipe {loaded.name} builds no column",
            "It trains on the sentences as they are.",
        )
    specs = chosen_specs(loaded.build, options.only) if options.only else loaded.build
    for name, spec in specs.items():
        if (model := getattr(spec, "model", None)) in loaded.first_stages:
            raise OpencseError(
                f"build.{name} mines with '{model}', which `opencse run` trains first",
                f"Use `opencse run`, or give a trained model: --set build.{name}.model=PATH.",
            )
    text = UserText(options.corpus, options.column).corpus()
    language = choose_language(
        loaded.corpus.language, likely_language(text.first_texts(ENOUGH_TEXTS))
    )
    if line := language.line(specs):
        options.notify(line)
    localised = language.pack.localise(with_models(specs, {"backbone": backbone}))
    with progress_shown(options.progress):
        built = build_views(
            text,
            localised,
            options.out,
            seed=options.seed,
            engine=options.engine,
            resume=options.resume,
            models=[backbone],
        )
    columns = [column for name, spec in specs.items() for column in spec.columns(name)]
    table = pq.read_table(sorted(built.path.glob("part-*.parquet")), columns=columns)
    present = {column: len(table) - table[column].null_count for column in columns}
    shares = ", ".join(f"{column} {count:,}" for column, count in present.items())
    options.notify(f"{len(table):,} sentences in {built.path}; sentences by column: {shares}")
    if empty := [column for column, count in present.items() if not count]:
        options.notify(f"warning: no sentence has {', '.join(empty)}")
    for line in skipped_lines(built, specs):
        options.notify(line)
    return built.path


def command(options: BuildCommand) -> None:
    """Build, and print statistics of the pairs if they are asked for."""
    if options.address and options.engine != "ray":
        raise OpencseError(
            "--address goes with --engine ray", "Add --engine ray, or leave the address out."
        )
    ray = options.engine == "ray"
    engine = (
        Ray(address=options.address, processes=options.workers)
        if ray
        else Local(processes=options.workers)
    )
    apply(build, replace(options, engine=engine))
    if options.stats:
        show(statistics_table(Path(options.out)))


def statistics_table(views: Path) -> Table:
    """Return the share of nulls, the means of the recorded scores and the rules of each column of built views."""
    table = pq.read_table(sorted(views.glob("part-*.parquet")))
    names = [name.removesuffix(".rule") for name in table.column_names if name.endswith(".rule")]
    recorded = [
        score for score in _SCORES if any(f"{name}.{score}" in table.column_names for name in names)
    ]
    rows: list[list[Cell]] = []
    notes = []
    for name in names:
        nulls = 100 * table[name].null_count / max(len(table), 1)
        present = [
            f"{name}.{score}" if f"{name}.{score}" in table.column_names else ""
            for score in recorded
        ]
        means = [pc.mean(table[score]).as_py() if score else None for score in present]
        rows.append(
            [
                name,
                len(table),
                Number(nulls, 1, " %"),
                *("" if m is None else Number(m, 3) for m in means),
            ]
        )
        rules = Counter(
            rule if not rule.startswith("row ") else "row"
            for rule in table[f"{name}.rule"].to_pylist()
        )
        notes.append(
            f"{name}: {', '.join(f'{rule} {count:,}' for rule, count in rules.most_common())}"
        )
    heads = ("column", "rows", "null", *(_SCORES[score] for score in recorded))
    return Table(heads, rows, "Built columns, and the means of their scores", notes)
