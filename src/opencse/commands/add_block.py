"""`opencse.run` without text: a model gets the meaning block that comes with the package."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from opencse.commands.options import RunOptions
from opencse.commands.reports.outcome import compare_outcome
from opencse.commands.reports.page import write_report
from opencse.commands.run_report import UPGRADE, RunResult
from opencse.encoder import save_encoder
from opencse.encoder.backbone import MEASURED, Backbone, append_block, shipped_block, weights_hash
from opencse.encoder.meaning_block import MeaningBlock
from opencse.evaluation.probes import ProbeScores
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import locked, write_json, write_text
from opencse.foundation.progress import collect
from opencse.foundation.reading import read_json
from opencse.foundation.toml_tables import decode
from opencse.recipes import dump_recipe, load_recipe
from opencse.training.card import encoder_card
from opencse.training.folder import check_folder, describe_environment, prepare_folder
from opencse.training.session import TrainingOutcome
from opencse.training.strength import StrengthCurve
from opencse.training.train import TrainingRun

_NEED_TEXT = ("paraphrases", "guard", "dev", "pairs", "minutes")


def add_block(options: RunOptions) -> RunResult:
    """Write a model with the block that comes with the package for it; nothing is trained or measured.

    Raises:
        OpencseError: No block comes with the package for this model, the recipe has none, or an option needs text.
    """
    folder = Path(options.out)
    recipe = load_recipe(options.recipe, variant=options.variant, overrides=options.settings)
    if recipe.block is None:
        raise OpencseError(f"the recipe {recipe.name} needs text", f"Give it: opencse run {recipe.name} DOCUMENTS.")
    for name in _NEED_TEXT:
        if getattr(options, name) is not None:
            raise OpencseError(f"--{name} needs text to train on", f"Give it: opencse run {recipe.name} DOCUMENTS.")
    with locked(folder), collect() as timings:
        check_folder(folder, resume=options.resume, overwrite=options.overwrite, backbone=options.backbone)
        backbone = Backbone(options.backbone)
        encoder = backbone.encoder(**recipe.pooling)
        source = shipped_block(encoder)
        if source is None:
            raise OpencseError(
                f"no meaning block for {backbone} comes with this version of opencse",
                f"Train one on your own text: opencse run {recipe.name} DOCUMENTS --backbone {backbone} -o {folder}.",
            )
        measured = read_json(source / MEASURED)
        curve = decode(StrengthCurve, measured["curve"], f"{source / MEASURED}: curve")
        block = MeaningBlock.load(str(source))
        block.strength = curve.chosen
        prepare_folder(folder, overwrite=options.overwrite)
        record = {
            "recipe": recipe.name,
            "variant": recipe.variant,
            "family": backbone.family,
            "backbone": backbone.name,
            "corpus": measured["text"],
            "rows": measured["rows"],
            "seed": recipe.training.seed,
            "precision": "fp32",
            "fingerprint": {"recipe": dump_recipe(recipe), "backbone": weights_hash(encoder)},
        }
        append_block(encoder, block)
        outcome = TrainingOutcome(0, None, None, None, 0.0, curve)
        save_encoder(encoder, folder / "model", encoder_card(recipe, record, outcome, language="en"))
        write_text(folder / "recipe.toml", dump_recipe(recipe))
        write_json(folder / "environment.json", describe_environment())
        write_json(folder / "run.json", {**record, "device": str(backbone.device), "outcome": asdict(outcome)})
        name = Path(backbone.name).name
        scores = dict.fromkeys((name, f"{name} + {recipe.name}"), ProbeScores(sts=(), seconds=0.0))
        changed = compare_outcome(scores, curve, [UPGRADE])
        report = write_report(scores, folder, outcome=changed, curve=curve)
    result = RunResult(TrainingRun(folder, recipe, outcome), scores, changed, report, timings.rounded())
    result.save(folder / "results.json")
    return result
