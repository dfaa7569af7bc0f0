"""`opencse.build`: the text columns of a recipe."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from opencse.commands.command_line import apply, takes
from opencse.commands.options import BuildOptions
from opencse.encoder.backbone import Backbone
from opencse.foundation.errors import OpencseError
from opencse.foundation.progress import progress_shown
from opencse.foundation.result_table import Cell, Number, Table, show
from opencse.foundation.workers import Engine, Local, Ray
from opencse.recipes import Recipe, load_recipe
from opencse.recipes.load import adapt_recipe
from opencse.recipes.rows.prepare import chosen_specs, skipped_lines, with_models
from opencse.text.corpus import Corpus
from opencse.text.documents import likely_language
from opencse.text.generated.language_model import LanguageModel
from opencse.text.languages import ENOUGH_TEXTS, choose_language
from opencse.text.user_text import UserText
from opencse.text.views.builder import build_views
from opencse.text.views.registry import View

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
    # Before anything is loaded.
    engine = engine_of(options)
    backbone = Backbone(options.backbone)
    recipe = _recipe(options, backbone)
    specs = _chosen(recipe, options.only)
    text = UserText(options.corpus, options.column).corpus()
    likely = likely_language(text.first_texts(ENOUGH_TEXTS))
    language = choose_language(recipe.corpus.language, likely)
    line = language.line(specs)
    if line:
        options.notify(line)
    if options.dry_run:
        for line in cost_lines(specs, list(text.texts())):
            options.notify(line)
        return Path(options.out)
    localised = language.pack.localise(with_models(specs, {"backbone": backbone}))
    with progress_shown(options.progress):
        built = build_views(
            text,
            localised,
            options.out,
            seed=options.seed,
            engine=engine,
            resume=options.resume,
            models=[backbone],
        )
    for line in summary_lines(built, specs):
        options.notify(line)
    if options.stats:
        show(statistics_table(built.path))
    return built.path


def cost_lines(specs: Mapping[str, View], texts: Sequence[str]) -> list[str]:
    """Return what the columns cost that a language model writes; nothing is sent."""
    lines = []
    for name, spec in specs.items():
        if isinstance(spec, LanguageModel):
            cost = spec.estimate(texts)
            lines.append(
                f"{name}: {cost.requests:,} requests to {spec.server}, about {cost.prompt_tokens:,} tokens sent and "
                f"{cost.reply_tokens:,} received; {cost.cached:,} replies are in the cache"
            )
    if not lines:
        lines.append("a language model writes none of these columns")
    return lines


def engine_of(options: BuildOptions) -> Engine:
    """Return what runs the work: an engine that was given, or the one of this name.

    Raises:
        OpencseError: An address was given for another engine than Ray.
    """
    if options.address and options.engine != "ray":
        raise OpencseError(
            "--address goes with --engine ray", "Add --engine ray, or leave the address out."
        )
    if options.engine == "ray":
        return Ray(address=options.address, processes=options.workers)
    if options.engine in (None, "local"):
        return Local(processes=options.workers)
    engine: Engine = options.engine
    return engine


def _recipe(options: BuildOptions, backbone: Backbone) -> Recipe:
    """Return the recipe, which must build a column.

    Raises:
        OpencseError: It builds none.
    """
    settings: Any = {
        "family": backbone.family,
        "variant": options.variant,
        "overrides": options.overrides,
    }
    if isinstance(options.recipe, Recipe):
        recipe = adapt_recipe(options.recipe, **settings)
    else:
        recipe = load_recipe(options.recipe, **settings)
    if not recipe.build:
        raise OpencseError(
            f"the recipe {recipe.name} builds no column",
            "It trains on the sentences as they are.",
        )
    return recipe


def _chosen(recipe: Recipe, only: Sequence[str]) -> Mapping[str, View]:
    """Return the views to build.

    Raises:
        OpencseError: One of them needs a model that only a run trains.
    """
    specs = chosen_specs(recipe.build, only) if only else recipe.build
    for name, spec in specs.items():
        model = getattr(spec, "model", None)
        if model in recipe.first_stages:
            raise OpencseError(
                f"build.{name} mines with '{model}', which `opencse run` trains first",
                f"Use `opencse run`, or give a trained model: --set build.{name}.model=PATH.",
            )
    return specs


def summary_lines(built: Corpus, specs: Mapping[str, View]) -> Iterator[str]:
    """Yield what was built, what is empty, and what mining skipped."""
    columns = [column for name, spec in specs.items() for column in spec.columns(name)]
    table = pq.read_table(sorted(built.path.glob("part-*.parquet")), columns=columns)
    present = {column: len(table) - table[column].null_count for column in columns}
    shares = ", ".join(f"{column} {count:,}" for column, count in present.items())
    yield f"{len(table):,} sentences in {built.path}; sentences by column: {shares}"
    empty = [column for column, count in present.items() if not count]
    if empty:
        yield f"warning: no sentence has {', '.join(empty)}"
    yield from skipped_lines(built, specs)


def command(options: BuildOptions) -> None:
    """Build."""
    apply(build, options)


def statistics_table(views: Path) -> Table:
    """Return the share of nulls, the means of the recorded scores and the rules of each column of built views."""
    table = pq.read_table(sorted(views.glob("part-*.parquet")))
    names = [name.removesuffix(".rule") for name in table.column_names if name.endswith(".rule")]
    recorded = []
    for score in _SCORES:
        if any(f"{name}.{score}" in table.column_names for name in names):
            recorded.append(score)
    rows: list[list[Cell]] = []
    notes = []
    for name in names:
        nulls = 100 * table[name].null_count / max(len(table), 1)
        row: list[Cell] = [name, len(table), Number(nulls, 1, " %")]
        for score in recorded:
            row.append(_mean_cell(table, f"{name}.{score}"))
        rows.append(row)
        notes.append(f"{name}: {_rule_counts(table[f'{name}.rule'].to_pylist())}")
    heads = ("column", "rows", "null", *(_SCORES[score] for score in recorded))
    return Table(heads, rows, "Built columns, and the means of their scores", notes)


def _mean_cell(table: pa.Table, column: str) -> Cell:
    """Return the mean of a column of scores; empty if there is no such column, or no score in it."""
    if column not in table.column_names:
        return ""
    mean = pc.mean(table[column]).as_py()
    return "" if mean is None else Number(mean, 3)


def _rule_counts(rules: Iterable[str]) -> str:
    """Return how often each rule was used, the most frequent first."""
    # A column of the user's table has the rule "row N", with the number of its row.
    counts = Counter("row" if rule.startswith("row ") else rule for rule in rules)
    return ", ".join(f"{rule} {count:,}" for rule, count in counts.most_common())
