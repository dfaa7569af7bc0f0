"""Training of the models that build the text columns of a run, such as the unsupervised one that mines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from opencse.encoder.backbone import Backbone
from opencse.foundation.measure import Measures
from opencse.recipes import FirstStage, Recipe, load_recipe
from opencse.text.corpus import Corpus
from opencse.text.mined.debiased_positives import DebiasedPositives
from opencse.text.mined.mined_spec import MinedSpec
from opencse.training.session import RunControl
from opencse.training.train import train_encoder


def train_first_stages(
    recipe: Recipe,
    specs: Mapping[str, Any],
    corpus: Corpus,
    backbone: Backbone,
    measures: Measures,
    control: RunControl,
) -> dict[str, Path]:
    """Train the first stages of a recipe that its constructors use, and return their models; resume unfinished ones.

    Args:
        recipe: Recipe of the run, with its `first_stages`, family, variant and seed.
        specs: The constructors to build, by name.
        corpus: As for `train_encoder`, before any column is built.
        backbone: As for `train_encoder`.
        measures: As for `train_encoder`.
        control: That of the run; the models are trained in `first_stages/` below its folder.
    """
    models = {}
    miners = (spec for spec in specs.values() if isinstance(spec, MinedSpec | DebiasedPositives))
    for name in dict.fromkeys(miner.model for miner in miners):
        if name not in recipe.first_stages:
            continue
        stage, folder = _stage_recipe(recipe, recipe.first_stages[name]), control.folder / "first_stages" / name
        resume = not control.overwrite and (folder / "run.json").is_file()
        control.notify(f"training {stage.name} first, for mining")
        own = replace(control, folder=folder, resume=resume, deadline=None)
        models[name] = train_encoder(stage, corpus, backbone, measures, own).model
    return models


def _stage_recipe(recipe: Recipe, stage: FirstStage) -> Recipe:
    """Return the recipe of a first stage with the family, variant, seed, precision and maximum steps of the run."""
    seed = f"training.seed={recipe.training.seed}"
    other = load_recipe(stage.recipe, family=recipe.family, variant=recipe.variant, overrides=[*stage.set, seed])
    if other.training.precision == "auto" or other.variant == "faithful":
        other = replace(other, training=replace(other.training, precision=recipe.training.precision))
    if recipe.training.max_steps is None:
        return other
    steps = min(recipe.training.max_steps, other.training.max_steps or recipe.training.max_steps)
    return replace(other, training=replace(other.training, max_steps=steps))
