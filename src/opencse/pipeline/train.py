"""`opencse.train`: from a corpus with the columns of a recipe to a trained encoder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opencse.data.given import open_corpus
from opencse.encoder import backbone_config
from opencse.encoder.embedder import Embedder, Precision
from opencse.encoder.given import model_source
from opencse.errors import OpencseError
from opencse.evaluation import Task, load_guard
from opencse.evaluation.compatibility import CompatibilityTask
from opencse.evaluation.development import development_scorer, development_sets, task_scorer
from opencse.io.corpus import Corpus
from opencse.pipeline.before_after import compared_texts
from opencse.pipeline.inputs import with_seed
from opencse.pipeline.watch import watched_measures
from opencse.recipes import Recipe, family_of, load_recipe
from opencse.runs.session import Notify
from opencse.training import TrainingRun, train_encoder

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


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

    Args:
        recipe: A name, a TOML file, or a resolved recipe (then `variant`, `overrides` and `seed` are ignored).
        corpus: Sentences with the columns that the recipe reads: a path in any format of `opencse.io.corpus`, documents
            (`opencse.data.documents`), `"demo"`, a list of strings, a pandas DataFrame or a `datasets.Dataset`.
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
        recipe = load_recipe(recipe, family=family, variant=variant, overrides=with_seed(overrides, seed))
    return train_on_rows(
        recipe,
        rows,
        backbone=backbone,
        out=out,
        dev=dev,
        data=data,
        guard=guard,
        resume=resume,
        overwrite=overwrite,
        track=track,
        progress=progress,
        notify=notify,
        corpus_name=corpus_name or rows.name,
        documents=rows,
    )


def train_on_rows(
    recipe: Recipe,
    rows: Corpus,
    *,
    backbone: str,
    out: str | Path,
    dev: str | Path | None,
    data: str | Path | None,
    guard: str | Path | None,
    resume: bool,
    overwrite: bool,
    track: Sequence[str],
    progress: bool,
    notify: Notify,
    corpus_name: str,
    documents: Corpus,
    record: Mapping[str, Any] | None = None,
) -> TrainingRun:
    """Train on rows that have been opened, with a resolved recipe.

    Args:
        recipe: The resolved recipe.
        rows: Rows with every column of the recipe.
        backbone: As for `train`.
        out: As for `train`.
        dev: As for `train`.
        data: As for `train`.
        guard: As for `train`.
        resume: As for `train`.
        overwrite: As for `train`.
        track: As for `train`.
        progress: As for `train`.
        notify: As for `train`.
        corpus_name: As for `train`.
        documents: Texts for which old and new vectors are compared (`Selection.compatible`), and which your searches
            search if the guard has no documents of its own.
        record: Further entries of `run.json`.

    Raises:
        OpencseError: The input is invalid; the message says how to fix it.
    """
    sets = development_sets(dev, data, recipe.selection.tasks)
    watched = guards(recipe, guard, documents)
    compatible = recipe.selection.compatible is not None
    if not sets and not watched and not compatible:
        notify(
            "no development pairs (--dev or --data): the weights of the last step are kept, and nothing checks that "
            "the model is still as good as before"
        )
    precision: Precision = "auto" if recipe.training.precision == "fp16" else recipe.training.precision

    def guard_scorer(encoder: SentenceTransformer) -> Callable[[], dict[str, float]]:
        if not compatible:
            return task_scorer(encoder, watched, precision)
        texts = compared_texts(documents)
        old = Embedder(encoder, precision=precision)(texts)  # nothing has been trained yet
        return task_scorer(encoder, [*watched, CompatibilityTask(items=texts, old=old)], precision)

    return train_encoder(
        recipe,
        rows,
        backbone=backbone,
        out=out,
        dev=None if not sets else lambda encoder: development_scorer(encoder, sets, precision),
        guards=guard_scorer if watched or compatible else None,
        watch=watched_measures(recipe.selection.watch, sets, precision, rows),
        resume=resume,
        overwrite=overwrite,
        track=track,
        progress=progress,
        notify=notify,
        corpus_name=corpus_name,
        record=record,
    )


def guards(recipe: Recipe, own: str | Path | None, documents: Corpus) -> list[Task]:
    """Return the guards of a run: those that come with opencse, and the user's own.

    Raises:
        OpencseError: The folder holds no guards, or the recipe uses none.
    """
    if recipe.selection.guard_tolerance is None:
        if own is not None:
            raise OpencseError(
                f"the recipe {recipe.name} uses no guards",
                "Give it one: --set selection.keep=last --set selection.guard_tolerance=0.3.",
            )
        return []
    if own is None:
        return load_guard()
    return [*load_guard(), *load_guard(own, prefix="own", documents=documents.texts())]
