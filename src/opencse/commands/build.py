"""`opencse.build`: the text columns of a recipe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from opencse.encoder.given import model_source
from opencse.foundation.errors import OpencseError
from opencse.foundation.progress import Notify
from opencse.foundation.workers import Engine
from opencse.recipes import load_recipe
from opencse.recipes.rows.columns import chosen_specs, with_models
from opencse.text.language import ENOUGH_TEXTS
from opencse.text.languages import choose_language
from opencse.text.user_text import open_corpus
from opencse.text.views.registry import ConstructorSpec, build_views


def build(
    recipe: str | Path,
    corpus: Any,
    out: str | Path,
    *,
    only: Sequence[str] = (),
    backbone: Any = "minilm",
    variant: str = "sound",
    overrides: Sequence[str] = (),
    seed: int = 0,
    column: str | None = None,
    engine: Engine | None = None,
    resume: bool = True,
    progress: bool = True,
    notify: Notify = lambda _: None,
) -> Path:
    """Build the text columns that a recipe's views read, such as negations and mined negatives.

    Args:
        recipe: A name or a TOML file.
        corpus: As for `train`.
        out: Folder for the Parquet parts.
        only: Build these columns and those that they are made from; all by default.
        backbone: The mining model of constructors with `model = "backbone"`.
        variant: `sound` or `faithful`.
        overrides: `key=value` settings of the recipe.
        seed: Seed of all sampling.
        column: As for `train`.
        engine: Runs the work; by default one process per core.
        resume: Keep the parts of an interrupted build.
        progress: Show a progress bar.
        notify: Receives short notes for the user.

    Returns:
        `out`.

    Raises:
        OpencseError: The recipe builds no column, or one cannot be built; the message says how to fix it.
    """
    loaded = load_recipe(recipe, variant=variant, overrides=overrides)
    if not loaded.build:
        raise OpencseError(f"the recipe {recipe} builds no column", "It trains on the sentences as they are.")
    specs = chosen_specs(loaded.build, only) if only else loaded.build
    for name, spec in specs.items():
        if (model := getattr(spec, "model", None)) in loaded.first_stages:
            raise OpencseError(
                f"build.{name} mines with '{model}', which `opencse run` trains first",
                f"Use `opencse run`, or give a trained model: --set build.{name}.model=PATH.",
            )
    text = open_corpus(corpus, column=column)
    language = choose_language(loaded.corpus.language, text.first_texts(ENOUGH_TEXTS), loaded.corpus.syntax)
    if line := language.line(specs):
        notify(line)
    built = build_views(
        text.path,
        language.pack.localise(with_models(specs, {"backbone": model_source(backbone)})),
        out,
        seed=seed,
        engine=engine,
        resume=resume,
        progress=progress,
        notify=notify,
    )
    for line in _built_lines(built, specs):
        notify(line)
    return built


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
