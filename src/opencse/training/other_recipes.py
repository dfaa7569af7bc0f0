"""Runs of other recipes that a run depends on: task vectors, and models for mining."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from opencse.io.corpus import Corpus
from opencse.recipes import Recipe, load_recipe
from opencse.runs.session import Notify


def train_task_vectors(recipe: Recipe, corpus: Corpus, out: Path, **options: Any) -> dict[str, Path]:
    """Train the recipes of the task vectors on the run's rows, with its seed and pooling; unfinished ones are resumed.

    Args:
        recipe: Recipe of the run.
        corpus: Rows of the run.
        out: Folder of the run.
        **options: As for `train_first_stages`.
    """
    models = {}
    for name, vector in recipe.task_vectors.items():
        if vector.weight:
            pooling = f"encoder.pooling={recipe.encoder.pooling}"
            other = _other(recipe, vector.recipe, pooling, *vector.set)
            purpose = f"for the task vector '{name}'"
            models[name] = _train(other, corpus, out / "task_vectors" / name, purpose, **options)
    return models


def train_first_stages(
    recipe: Recipe, specs: Mapping[str, Any], corpus: Corpus, out: Path, **options: Any
) -> dict[str, Path]:
    """Train the first stages of a recipe that its constructors use; unfinished ones are resumed.

    Args:
        recipe: Recipe of the run, with its `first_stages`, family and seed.
        specs: The constructors to build, by name.
        corpus: As for `train_encoder`, before any column is built.
        out: Folder of the run; the models are trained in `first_stages/` below it.
        **options: `backbone`, `dev`, `progress`, `overwrite`, `notify`: as for `train_encoder`.
    """
    models = {}
    for name in dict.fromkeys(getattr(spec, "model", "") for spec in specs.values()):
        if name in recipe.first_stages:
            other = _other(recipe, recipe.first_stages[name].recipe, *recipe.first_stages[name].set)
            models[name] = _train(other, corpus, out / "first_stages" / name, "first, for mining", **options)
    return models


def _other(recipe: Recipe, name: str, *settings: str) -> Recipe:
    """Return another recipe with the family, seed, precision and maximum steps of the run."""
    other = load_recipe(name, family=recipe.family, overrides=[*settings, f"training.seed={recipe.training.seed}"])
    if other.training.precision == "auto":
        other = replace(other, training=replace(other.training, precision=recipe.training.precision))
    if recipe.training.max_steps is None:
        return other
    steps = min(recipe.training.max_steps, other.training.max_steps or recipe.training.max_steps)
    return replace(other, training=replace(other.training, max_steps=steps))


def _train(
    recipe: Recipe, corpus: Corpus, folder: Path, purpose: str, *, overwrite: bool, notify: Notify, **options: Any
) -> Path:
    from opencse.training.train import train_encoder

    resume = not overwrite and (folder / "run.json").is_file()
    notify(f"training {recipe.name} {purpose}")
    return train_encoder(recipe, corpus, out=folder, resume=resume, overwrite=overwrite, notify=notify, **options).model
