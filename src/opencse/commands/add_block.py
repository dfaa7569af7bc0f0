"""`opencse.run` without text: give a model the meaning block that comes with the package."""

from __future__ import annotations

from functools import partial
from pathlib import Path

from opencse.commands.options import RunOptions
from opencse.commands.reports.examples import (
    package_triples,
    pick_examples,
)
from opencse.commands.reports.page import write_report
from opencse.commands.reports.tables import (
    compare_models,
)
from opencse.commands.run_result import RunResult
from opencse.commands.run_scores import upgrade_remark
from opencse.commands.train import (
    scoring_precision,
)
from opencse.debias.add import add_block
from opencse.debias.reranker import Reranker
from opencse.debias.training import block_evaluators, read_strength
from opencse.encoder.backbone import Backbone
from opencse.encoder.embedder import Embedder
from opencse.evaluation.probes import ProbeScores
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import locked
from opencse.foundation.progress import collect
from opencse.recipes import Recipe, load_recipe
from opencse.recipes.load import adapt_recipe
from opencse.training.folder import check_folder

_NEED_TEXT = ("paraphrases", "guard", "dev", "pairs", "minutes")


def add_shipped_block(options: RunOptions) -> RunResult:
    """Add the block that comes with the package for a model; nothing is trained.

    Raises:
        OpencseError: No block comes with the package for this model, the recipe has none, or an
            option needs text.
    """
    folder = Path(options.out)
    if isinstance(options.recipe, Recipe):
        recipe = adapt_recipe(
            options.recipe,
            family=options.recipe.family,
            variant=options.variant,
            overrides=options.settings,
        )
    else:
        recipe = load_recipe(options.recipe, variant=options.variant, overrides=options.settings)
    if recipe.block is None:
        raise OpencseError(
            f"the recipe {recipe.name} needs text", f"Give it: opencse run {recipe.name} DOCUMENTS."
        )
    needing_text = [name for name in _NEED_TEXT if getattr(options, name) is not None]
    if recipe.block.same_width:
        needing_text.append("same-width")
    if needing_text:
        raise OpencseError(
            f"--{needing_text[0]} needs text to train on",
            f"Give it: opencse run {recipe.name} DOCUMENTS.",
        )
    with locked(folder), collect() as timings:
        check_folder(
            folder, resume=options.resume, overwrite=options.overwrite, backbone=options.backbone
        )
        backbone = Backbone(options.backbone)
        evaluators = partial(block_evaluators, precision=scoring_precision(recipe, options))
        added = add_block(recipe, backbone, folder, evaluators, overwrite=options.overwrite)
        curve = read_strength(folder)
        name = Path(backbone.name).name
        nothing = ProbeScores(sts=())
        scores = dict.fromkeys((name, f"{name} + {recipe.name}"), nothing)
        encoder = backbone.encoder(**recipe.pooling)
        untouched = Embedder(encoder)
        remarks = [
            upgrade_remark(encoder),
            "The block only understands English. For other languages, drop it with "
            f"truncate_dim={untouched.dimension}.",
        ]
        changed = compare_models(scores, curve, remarks)
        pairs = pick_examples(package_triples(), untouched.encode, Reranker(added.model))
        report = write_report(scores, folder, comparison=changed, curve=curve, pairs=pairs)
    result = RunResult(
        run=added,
        untouched=nothing,
        trained=nothing,
        scores=scores,
        comparison=changed,
        report=report,
        timings=timings.rounded(),
    )
    result.save(folder / "results.json")
    return result
