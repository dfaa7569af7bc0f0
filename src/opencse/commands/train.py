"""`opencse.train`: from a corpus with the columns of a recipe to a trained encoder."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from typing import Any

from accelerate import PartialState

from opencse.commands.comparison import parse_seeds, seed_folders
from opencse.commands.display import run_lines
from opencse.commands.option_fields import takes
from opencse.commands.options import TrainCommand, TrainOptions
from opencse.commands.validation import ValidationData, read_validation
from opencse.commands.watch import watched_measures
from opencse.encoder import backbone_config
from opencse.encoder.embedder import Precision
from opencse.encoder.given import model_source
from opencse.foundation.errors import OpencseError
from opencse.foundation.progress import Notify, note
from opencse.foundation.result_table import show
from opencse.recipes import Recipe, family_of
from opencse.recipes.rows.paraphrases import Paraphrases
from opencse.recipes.rows.prepare import recipe_for_corpus
from opencse.text.corpus import Corpus
from opencse.text.user_text import open_corpus
from opencse.training import TrainingRun, train_encoder


@takes(TrainOptions)
def train(options: TrainOptions) -> TrainingRun:
    """Train an encoder.

    Returns:
        The finished run; `.model` is the folder of the trained encoder.

    Raises:
        OpencseError: The input is invalid; the message says how to fix it.
    """
    rows, backbone = open_corpus(options.corpus, column=options.column, split=False), model_source(options.backbone)
    recipe = options.recipe
    if not isinstance(recipe, Recipe):
        recipe = recipe_for_corpus(
            recipe,
            rows,
            family=options.family or family_of(backbone_config(backbone)),
            variant=options.variant,
            overrides=options.settings,
            paraphrases=Paraphrases(),
        )
    if recipe.used_parts and "part" not in rows.columns:
        options.notify(
            f"{recipe.name} trains on a mixture of parts, each with some of the columns: `opencse run` draws it; "
            "`opencse train` takes every row with all its columns, as it is"
        )
    validation = read_validation(recipe, rows.texts, dev=options.dev, data=options.data, guard=options.guard)
    return train_on_rows(
        recipe,
        rows,
        validation,
        backbone=backbone,
        out=options.out,
        resume=options.resume,
        overwrite=options.overwrite,
        track=options.track,
        progress=options.progress,
        notify=options.notify,
        corpus_name=rows.name,
    )


def command(options: TrainCommand) -> None:
    """Train with one seed or several, and print where the models are."""
    if options.seed is not None and options.seeds is not None:
        raise OpencseError("--seed and --seeds exclude each other")
    out = Path(options.out)
    folders = {options.seed: out} if options.seeds is None else seed_folders(out, parse_seeds(options.seeds))
    asked = {each.name: getattr(options, each.name) for each in fields(TrainOptions)}
    for seed, folder in folders.items():
        # Some of several runs may not have started before an interruption.
        resume = options.resume and (options.seeds is None or (folder / "run.json").is_file())
        run = train(**{**asked, "seed": seed, "out": folder, "resume": resume, "notify": note})
        if PartialState().is_main_process:
            show(run_lines(run))


def train_on_rows(
    recipe: Recipe, rows: Corpus, validation: ValidationData, *, notify: Notify, **options: Any
) -> TrainingRun:
    """Train on rows that have been opened, with a resolved recipe.

    Args:
        recipe: The resolved recipe.
        rows: Rows with every column of the recipe.
        validation: The data on which the model is scored while it trains.
        notify: As for `train`.
        **options: As for `opencse.training.train_encoder`.

    Raises:
        OpencseError: The input is invalid; the message says how to fix it.
    """
    if not validation:
        notify(
            "no development pairs (--dev or --data): the weights of the last step are kept, and nothing checks that "
            "the model is still as good as before"
        )
    precision: Precision = "auto" if recipe.training.precision == "fp16" else recipe.training.precision
    return train_encoder(
        recipe,
        rows,
        dev=validation.scorer(precision),
        guards=validation.guard_scorer(precision),
        watch=watched_measures(recipe.selection.watch, validation.development, precision, rows),
        notify=notify,
        **options,
    )
