"""The other recipes that a run depends on: those of its task vectors, and those of the models that mine for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from opencse.recipes import Recipe, load_recipe


def task_vector_recipes(recipe: Recipe) -> dict[str, Recipe]:
    """Return the recipes of the task vectors with a weight, by name; each has the seed and pooling of the run."""
    pooling = f"encoder.pooling={recipe.encoder.pooling}"
    vectors = {name: vector for name, vector in recipe.task_vectors.items() if vector.weight}
    return {name: _other(recipe, vector.recipe, pooling, *vector.set) for name, vector in vectors.items()}


def first_stage_recipes(recipe: Recipe, specs: Mapping[str, Any]) -> dict[str, Recipe]:
    """Return the recipes of the first stages that some constructors use, by name.

    Args:
        recipe: Recipe of the run, with its `first_stages`, family and seed.
        specs: The constructors to build, by name.
    """
    used = dict.fromkeys(getattr(spec, "model", "") for spec in specs.values())
    stages = {name: recipe.first_stages[name] for name in used if name in recipe.first_stages}
    return {name: _other(recipe, stage.recipe, *stage.set) for name, stage in stages.items()}


def _other(recipe: Recipe, name: str, *settings: str) -> Recipe:
    """Return another recipe with the family, seed, precision and maximum steps of the run."""
    other = load_recipe(name, family=recipe.family, overrides=[*settings, f"training.seed={recipe.training.seed}"])
    if other.training.precision == "auto":
        other = replace(other, training=replace(other.training, precision=recipe.training.precision))
    if recipe.training.max_steps is None:
        return other
    steps = min(recipe.training.max_steps, other.training.max_steps or recipe.training.max_steps)
    return replace(other, training=replace(other.training, max_steps=steps))
