"""`opencse.train`: from a corpus with the columns of a recipe to a trained encoder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opencse.commands.inputs import with_seed
from opencse.commands.validation import ValidationData, read_validation
from opencse.commands.watch import watched_measures
from opencse.encoder import backbone_config
from opencse.encoder.embedder import Precision
from opencse.encoder.given import model_source
from opencse.foundation.progress import Notify
from opencse.recipes import Recipe, family_of
from opencse.recipes.rows.paraphrases import Paraphrases
from opencse.recipes.rows.prepare import recipe_for_corpus
from opencse.text.corpus import Corpus
from opencse.text.user_text import open_corpus
from opencse.training import TrainingRun, train_encoder


def train(
    recipe: str | Path | Recipe,
    corpus: Any,
    *,
    backbone: Any,
    out: str | Path,
    dev: str | Path | None = None,
    data: str | Path | None = None,
    guard: str | Path | None = None,
    column: str | None = None,
    variant: str = "sound",
    overrides: Sequence[str] = (),
    seed: int | None = None,
    resume: bool = False,
    overwrite: bool = False,
    track: Sequence[str] = (),
    progress: bool = True,
    notify: Notify = lambda _: None,
    corpus_name: str | None = None,
) -> TrainingRun:
    """Train a sentence encoder on a corpus that has the columns of the recipe.

    Rows are taken as they are: where the recipe mixes parts (`[corpus.parts]`), `opencse.run` draws the mixture.

    Args:
        recipe: A name, a TOML file, or a resolved recipe (then `variant`, `overrides` and `seed` are ignored).
        corpus: Sentences with the columns that the recipe reads: a path in any format of `opencse.text.corpus`,
            documents (`opencse.text.documents`), `"demo"`, a list of strings, a pandas DataFrame or a
            `datasets.Dataset`.
        backbone: A folder, a hub id, a bundled name or a `SentenceTransformer`.
        out: Folder of the run.
        dev: Scored pairs that choose the best step: a file, `"stsb"` (STS-B dev below `data`) or `"none"`. By default
            the development sets that the recipe names (`Selection.tasks`) if `data` is given, else none.
        data: The STS files (`opencse.evaluation.load_sts`).
        guard: Your own guards (`opencse.evaluation.load_guard`), in addition to those that come with opencse, for
            recipes with guards (`Selection.guard_tolerance`): a folder, or a file of searches.
        column: The column that holds the sentence; by default `text`, or the likeliest by name.
        variant: `sound`, or `faithful`: the system as published.
        overrides: `key=value` settings of the recipe.
        seed: Shorthand for the override `training.seed=…`.
        resume: Continue from the last checkpoint in `out`.
        overwrite: Replace the run in `out`.
        track: Trackers beside `metrics.jsonl`: `tensorboard`, `wandb`, `trackio`.
        progress: Show progress bars.
        notify: Receives short notes for the user.
        corpus_name: Name of the corpus on the model card; by default its path.

    Returns:
        The finished run; `.model` is the folder of the trained encoder.

    Raises:
        OpencseError: The input is invalid; the message says how to fix it.
    """
    rows, backbone = open_corpus(corpus, column=column, split=False), model_source(backbone)
    if not isinstance(recipe, Recipe):
        family = family_of(backbone_config(backbone))
        settings = with_seed(overrides, seed)
        recipe = recipe_for_corpus(
            recipe, rows, family=family, variant=variant, overrides=settings, paraphrases=Paraphrases()
        )
    if recipe.used_parts and "part" not in rows.columns:
        notify(
            f"{recipe.name} trains on a mixture of parts, each with some of the columns: `opencse run` draws it; "
            "`opencse train` takes every row with all its columns, as it is"
        )
    return train_on_rows(
        recipe,
        rows,
        read_validation(recipe, rows.texts, dev=dev, data=data, guard=guard),
        backbone=backbone,
        out=out,
        resume=resume,
        overwrite=overwrite,
        track=track,
        progress=progress,
        notify=notify,
        corpus_name=corpus_name or rows.name,
    )


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
