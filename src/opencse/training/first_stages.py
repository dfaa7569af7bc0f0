"""The first stages of a recipe: models that are trained only to mine rows with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from opencse.encoder.backbone import Backbone
from opencse.foundation.evaluator import Evaluators
from opencse.foundation.reading import stay_inside
from opencse.recipes import Recipe, load_recipe
from opencse.recipes.schema import FirstStage
from opencse.text.corpus import Corpus
from opencse.text.mined.debiased import DebiasedPositives
from opencse.text.mined.vectors import MinedSpec
from opencse.training.session import RunControl
from opencse.training.train import train_encoder


def train_first_stages(
    recipe: Recipe,
    specs: Mapping[str, Any],
    corpus: Corpus,
    backbone: Backbone,
    evaluators: Evaluators,
    control: RunControl,
) -> dict[str, Path]:
    """Train the first stages of a recipe that its views use, and return their models; resume unfinished ones.

    Args:
        recipe: Recipe of the run, with its `first_stages`, family, variant and seed.
        specs: The views to build, by name.
        corpus: As for `train_encoder`, before any column is built.
        backbone: As for `train_encoder`.
        evaluators: As for `train_encoder`.
        control: That of the run; the models are trained in `first_stages/` below its folder.
    """
    models = {}
    miners = [spec for spec in specs.values() if isinstance(spec, MinedSpec | DebiasedPositives)]
    for name in dict.fromkeys(miner.model for miner in miners):
        if name not in recipe.first_stages:
            continue
        stage = _stage_recipe(recipe, recipe.first_stages[name])
        stages = control.folder / "first_stages"
        folder = stay_inside(stages, name, "Give the stage a plain name.")
        resume = not control.overwrite and (folder / "run.json").is_file()
        control.notify(f"training {stage.name} first, for mining")
        # The deadline and the user's callbacks are those of the main run.
        own = replace(control, folder=folder, resume=resume, deadline=None, callbacks=())
        models[name] = train_encoder(stage, corpus, backbone, evaluators, own).model
    return models


def _stage_recipe(recipe: Recipe, stage: FirstStage) -> Recipe:
    """Return the recipe of a first stage with the family, variant, seed, precision and maximum steps of the run."""
    seed = f"training.seed={recipe.training.seed}"
    first = load_recipe(
        stage.recipe, family=recipe.family, variant=recipe.variant, overrides=[*stage.set, seed]
    )
    if first.training.precision == "auto" or first.variant == "faithful":
        first = replace(
            first, training=replace(first.training, precision=recipe.training.precision)
        )
    # A short run gets a short first stage.
    limit = recipe.training.max_steps or recipe.training.most_steps
    if limit is not None:
        if first.training.most_steps is not None:
            limit = min(limit, first.training.most_steps)
        first = replace(first, training=replace(first.training, most_steps=limit))
    return first
