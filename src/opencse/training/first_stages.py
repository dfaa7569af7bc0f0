"""Training of the models that build the text columns of a run, such as the unsupervised one that mines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from opencse.io.corpus import Corpus
from opencse.recipes import Recipe
from opencse.training.other_recipes import first_stage_recipes
from opencse.training.train import train_other


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
    return {
        name: train_other(other, corpus, out / "first_stages" / name, "first, for mining", **options)
        for name, other in first_stage_recipes(recipe, specs).items()
    }
