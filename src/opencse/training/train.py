"""Contrastive training: from a recipe and a corpus to a trained encoder in a folder."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from accelerate.utils import set_seed

from opencse.encoder import save_encoder
from opencse.encoder.backbone import Backbone, weights_hash
from opencse.encoder.device import join_processes
from opencse.foundation.errors import OpencseError
from opencse.foundation.evaluator import Evaluators
from opencse.foundation.files import locked, write_text
from opencse.foundation.progress import timed
from opencse.recipes import Recipe, dump_recipe
from opencse.recipes.rows.token_store import UsableRows
from opencse.text.corpus import Corpus
from opencse.training.callbacks import ActiveRun, TrainingCallback
from opencse.training.folder import package_versions
from opencse.training.forecast import Forecast
from opencse.training.log import MetricsLog
from opencse.training.loop import TrainingLoop, outcome_of
from opencse.training.model_card import encoder_card
from opencse.training.repeated import repeated_lines
from opencse.training.same_vectors import check_same_vectors
from opencse.training.saving import SaveCheckpoints
from opencse.training.selection import BEST, EarlyStopping, PeriodicEvaluation
from opencse.training.session import RunControl, TrainingOutcome, TrainingSession, run_record
from opencse.training.trained_model import TrainedModel
from opencse.training.training_text import TrainingText


@dataclass(frozen=True)
class TrainingRun:
    """A finished training run.

    Attributes:
        folder: Folder with `model/`, `metrics.jsonl`, `recipe.toml`, `run.json`,
            `environment.json`.
        recipe: The recipe as resolved for the backbone.
        outcome: Steps, scores and time.
        warnings: Warnings for the user.
    """

    folder: Path
    recipe: Recipe
    outcome: TrainingOutcome
    warnings: tuple[str, ...] = ()

    @property
    def model(self) -> Path:
        """The trained model, a sentence-transformers folder."""
        return self.folder / "model"


def train_encoder(
    recipe: Recipe, corpus: Corpus, backbone: Backbone, evaluators: Evaluators, control: RunControl
) -> TrainingRun:
    """Train a sentence encoder on rows that have every column of the recipe's views.

    Args:
        recipe: The resolved recipe.
        corpus: The training rows. The corpus name goes on the model card.
        backbone: The model to train; copies of it are trained.
        evaluators: What scores the model while it trains, and selects the weights that are kept
            (`NO_EVALUATORS` for nothing: those of the last step are kept).
        control: How the run is carried out.

    Raises:
        OpencseError: The input is invalid; the folder is unchanged, or has its last valid
            checkpoint.
    """
    main = join_processes().is_main_process
    # Only the main process writes into the folder.
    with locked(control.folder) if main else nullcontext():
        session = TrainingSession(control)
        _check_batch_size(recipe, session)
        recipe = replace(recipe, training=session.settle(recipe.training, backbone))
        backbone = backbone.with_seed(recipe.training.seed)
        callbacks = all_callbacks(recipe, evaluators, control)
        model = TrainedModel(recipe, backbone, session.device, callbacks)
        text = TrainingText(recipe, corpus, backbone, model, session)

        fingerprint = _fingerprint(recipe, model, text) | evaluators.digests()
        for callback in callbacks:
            fingerprint |= callback.digests()
        session.compare_processes(
            {**fingerprint, "number of rows": str(text.store.rows), **package_versions()}
        )
        # After the fingerprint: a finished run of another recipe is an error, not a result.
        finished = session.finished(fingerprint, recipe.training.shard_weights)
        if finished is not None:
            return TrainingRun(session.folder, recipe, finished, tuple(score_warnings(finished)))
        read = {"corpus": corpus.name, "rows": text.store.rows, "blank_rows": text.store.skipped}
        session.begin(run_record(recipe, backbone, fingerprint, read))
        _tell(text, model, backbone, recipe, session)

        # Dropout and masks differ between processes.
        set_seed(recipe.training.seed, device_specific=True)
        network = model.network.to(session.device)
        model.compile()
        # Tokenised once; each evaluation only encodes.
        evaluators.start(model.scored)
        collator = text.collator(session.on_cpu)
        # The vectors in training must be those that `model.encode` will give.
        same_vectors = partial(
            check_same_vectors,
            model.encoder,
            collator,
            model.views,
            UsableRows(corpus, model.sources),
            packed=model.packed,
        )
        same_vectors()
        # After the evaluation, which gives the encoder its best weights, and before what the user's
        # callbacks do to it.
        callbacks.insert(2, _CheckAtEnd(same_vectors))
        loop = TrainingLoop(
            network,
            collator,
            text.store.rows,
            corpus,
            recipe,
            session,
            callbacks,
        )
        with timed("training steps"):
            run = loop.run()
        outcome = outcome_of(run)
        if session.main:
            model.merge_adapter()
            # First the model, then the card about it: what a card quotes is written by strangers.
            save_encoder(model.encoder, session.folder / "model", "")
            card = encoder_card(
                recipe, session.record, outcome, run.card, language=control.language
            )
            write_text(session.folder / "model" / "README.md", card)
            session.end(outcome, run.checkpoints.folder, session.folder / BEST)
        session.accelerator.wait_for_everyone()
        warnings = [*text.warnings, *run.warnings, *score_warnings(outcome)]
        return TrainingRun(session.folder, recipe, outcome, tuple(warnings))


class _CheckAtEnd(TrainingCallback):
    """Repeats a check in the main process after the last step."""

    def __init__(self, check: Callable[[], object]) -> None:
        self._check = check

    def on_train_end(self, run: ActiveRun) -> None:
        """Check."""
        if run.main:
            self._check()


def all_callbacks(
    recipe: Recipe, evaluators: Evaluators, control: RunControl
) -> list[TrainingCallback]:
    """Return the callbacks of a run, in the order in which they are called.

    The checkpoint comes last, so that it stores what the others did.
    """
    callbacks: list[TrainingCallback] = [MetricsLog(), PeriodicEvaluation(evaluators)]
    if recipe.selection.patience is not None:
        callbacks.append(EarlyStopping(recipe.selection.patience))
    callbacks.append(Forecast())
    callbacks.extend(control.callbacks)
    callbacks.append(SaveCheckpoints())
    return callbacks


def _check_batch_size(recipe: Recipe, session: TrainingSession) -> None:
    batch_size = recipe.training.batch_size
    processes = session.accelerator.num_processes
    if batch_size % processes:
        raise OpencseError(
            f"training.batch_size {batch_size} does not divide among {processes} processes",
            "Choose a multiple.",
        )


def _tell(
    text: TrainingText,
    model: TrainedModel,
    backbone: Backbone,
    recipe: Recipe,
    session: TrainingSession,
) -> None:
    """Tell the user what is particular about the text and the model."""
    for warning in text.warnings:
        session.notify(f"warning: {warning}")
    for line in [*text.notes(), *repeated_lines(text.store, model.views, recipe.training)]:
        session.notify(line)
    if model.padded_transformer:
        kind = backbone.config.get("model_type")
        session.notify(f"texts are padded: a {kind} does not compute them packed")


def score_warnings(outcome: TrainingOutcome) -> list[str]:
    """Return warnings about scores below those of the untouched backbone."""
    first = outcome.first_score
    best = outcome.best_score
    if first is None or best is None or best >= first:
        return []
    return [
        "no step stayed above the untouched backbone on the development set "
        f"({best:.2f} against {first:.2f})"
    ]


def _fingerprint(recipe: Recipe, model: TrainedModel, text: TrainingText) -> dict[str, str]:
    """Return the hashes and settings that a resumed run must share with its start, by name."""
    shared = {
        "recipe": dump_recipe(recipe),
        "corpus": text.store.corpus_hash,
        "backbone": weights_hash(model.encoder),
    }
    for name, digest in text.teacher_digests.items():
        shared[f"teacher {name}"] = digest
    for name, module in model.network.head.modules_by_loss.items():
        if module.digest:
            shared[f"model of the loss {name}"] = module.digest
    return shared
