"""`opencse.train`: from a corpus with the columns of a recipe to a trained encoder."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from opencse.commands.command_line import apply, takes
from opencse.commands.display import run_lines
from opencse.commands.inputs import read_validation, resolve_recipe
from opencse.commands.options import TrainCommand, TrainOptions
from opencse.commands.run_groups import parse_seeds, seed_folders
from opencse.encoder.backbone import Backbone
from opencse.evaluation.measures import TrainingGeometry
from opencse.foundation.errors import OpencseError
from opencse.foundation.measure import Measures
from opencse.foundation.numbers import few_sentences
from opencse.foundation.result_table import show
from opencse.recipes import Recipe
from opencse.text.corpus import Corpus
from opencse.text.user_text import UserText
from opencse.training.folder import check_flags
from opencse.training.session import RunControl
from opencse.training.train import TrainingRun, train_encoder


@takes(TrainOptions)
def train(options: TrainOptions) -> TrainingRun:
    """Train an encoder.

    Returns:
        The finished run; `.model` is the folder of the trained encoder.

    Raises:
        OpencseError: The input is invalid; the message says how to fix it.
    """
    backbone, rows = Backbone(options.backbone), UserText(options.corpus, options.column).corpus(split=False)
    few = few_sentences(rows.texts())
    recipe = resolve_recipe(options, backbone, rows.columns, None)
    validation, control = read_validation(recipe, rows, options), run_control(options)
    for line in few:
        options.notify(line)
    if recipe.used_parts and "part" not in rows.columns:
        options.notify(
            f"{recipe.name} trains on a mixture of parts, each with some of the columns: `opencse run` draws it; "
            "`opencse train` takes every row with all its columns, as it is"
        )
    return train_on_rows(recipe, rows, backbone, validation, control)


def run_control(options: TrainOptions) -> RunControl:
    """Return how a training run is carried out."""
    folder = Path(options.out)
    check_flags(folder, resume=options.resume, overwrite=options.overwrite, backbone=options.backbone)
    return RunControl(
        folder=folder,
        resume=options.resume,
        overwrite=options.overwrite,
        progress=options.progress,
        notify=options.notify,
    )


def command(options: TrainCommand) -> None:
    """Train with one seed or several, and print where the models are."""
    from accelerate import PartialState

    if options.seed is not None and options.seeds is not None:
        raise OpencseError("--seed and --seeds exclude each other")
    out = Path(options.out)
    folders = {options.seed: out} if options.seeds is None else seed_folders(out, parse_seeds(options.seeds))
    for seed, folder in folders.items():
        # Some of several runs may not have started before an interruption.
        resume = options.resume and (options.seeds is None or (folder / "run.json").is_file())
        run = apply(train, replace(options, seed=seed, out=folder, resume=resume))
        if PartialState().is_main_process:
            show(run_lines(run))


def train_on_rows(
    recipe: Recipe, rows: Corpus, backbone: Backbone, measures: Measures, control: RunControl
) -> TrainingRun:
    """Train on opened rows with every column of a resolved recipe; `read_validation` gives the measures.

    Raises:
        OpencseError: The input is invalid; the message says how to fix it.
    """
    if not measures.validate:
        control.notify(
            "no development pairs (--dev or --data): the weights of the last step are kept, and nothing checks that "
            "the model is still as good as before"
        )
    if "training" in recipe.selection.watch:
        measures = replace(measures, watch=[*measures.watch, TrainingGeometry(rows)])
    return train_encoder(recipe, rows, backbone, measures, control)
