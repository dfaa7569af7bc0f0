"""`opencse.build`: the text columns of a recipe."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from opencse.data.columns import chosen_specs, with_models
from opencse.engines import Engine
from opencse.errors import OpencseError
from opencse.io import demo
from opencse.recipes import load_recipe
from opencse.runs.session import Notify
from opencse.views import build as build_views


def build(
    recipe: str | Path,
    corpus: str | Path,
    out: str | Path,
    *,
    only: Sequence[str] = (),
    backbone: str | Path = "minilm",
    variant: str = "sound",
    overrides: Sequence[str] = (),
    seed: int = 0,
    column: str = "text",
    engine: Engine | None = None,
    resume: bool = True,
    progress: bool = True,
    notify: Notify = lambda _: None,
) -> Path:
    """Build the text columns that a recipe's views read, such as negations and mined negatives.

    Args:
        recipe: A name or a TOML file.
        corpus: Sentences in any format of `opencse.io.corpus`, or `"demo"`.
        out: The folder for the Parquet parts.
        only: Build these columns, and those that they are made of; all by default.
        backbone: The model that mines where the recipe says `model = "backbone"`.
        variant: `sound` or `faithful`.
        overrides: `key=value` settings of the recipe.
        seed: The only source of randomness.
        column: The corpus's column that holds the sentence.
        engine: Where the work is done; by default one process per core.
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
    return build_views(
        demo.corpus(corpus),
        with_models(specs, {"backbone": backbone}),
        out,
        seed=seed,
        engine=engine,
        resume=resume,
        progress=progress,
        column=column,
        notify=notify,
    )
