"""Training of the models that build the text columns of a run, such as the unsupervised one that mines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from opencse.foundation.progress import Notify
from opencse.recipes import FirstStage, Recipe, load_recipe
from opencse.text.corpus import Corpus
from opencse.training.train import train_encoder


def train_first_stages(
    recipe: Recipe,
    specs: Mapping[str, Any],
    corpus: Corpus,
    out: Path,
    *,
    overwrite: bool,
    notify: Notify,
    **options: Any,
) -> dict[str, Path]:
    """Train the first stages of a recipe that its constructors use, and return their models; resume unfinished ones.

    Args:
        recipe: Recipe of the run, with its `first_stages`, family and seed.
        specs: The constructors to build, by name.
        corpus: As for `train_encoder`, before any column is built.
        out: Folder of the run; the models are trained in `first_stages/` below it.
        overwrite: Replace runs that are there.
        notify: As for `train_encoder`.
        **options: `backbone`, `dev`, `progress`: as for `train_encoder`.
    """
    models = {}
    for name in dict.fromkeys(getattr(spec, "model", "") for spec in specs.values()):
        if name not in recipe.first_stages:
            continue
        stage, folder = _stage_recipe(recipe, recipe.first_stages[name]), out / "first_stages" / name
        resume = not overwrite and (folder / "run.json").is_file()
        notify(f"training {stage.name} first, for mining")
        run = train_encoder(stage, corpus, out=folder, resume=resume, overwrite=overwrite, notify=notify, **options)
        models[name] = run.model
    return models


def _stage_recipe(recipe: Recipe, stage: FirstStage) -> Recipe:
    """Return the recipe of a first stage with the family, seed, precision and maximum steps of the run."""
    seed = f"training.seed={recipe.training.seed}"
    other = load_recipe(stage.recipe, family=recipe.family, variant=recipe.variant, overrides=[*stage.set, seed])
    if other.training.precision == "auto":
        other = replace(other, training=replace(other.training, precision=recipe.training.precision))
    if recipe.training.max_steps is None:
        return other
    steps = min(recipe.training.max_steps, other.training.max_steps or recipe.training.max_steps)
    return replace(other, training=replace(other.training, max_steps=steps))
