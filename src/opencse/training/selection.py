"""Development scores, the weights that are kept, and early stopping."""

from __future__ import annotations

from accelerate.utils import broadcast_object_list
from torch import Tensor

from opencse.foundation.evaluator import Evaluators
from opencse.foundation.progress import timed
from opencse.training.callbacks import ActiveRun, TrainingCallback
from opencse.training.checkpoint import check_weights, load_weights, save_weights
from opencse.training.log import check_finite

BEST = "best.safetensors"
"""File in the run's folder with the best weights so far."""


class PeriodicEvaluation(TrainingCallback):
    """Scores the model every `selection.every` steps, and saves the weights of the best score.

    Args:
        evaluators: What is measured, started with the encoder.
    """

    def __init__(self, evaluators: Evaluators) -> None:
        self._evaluators = evaluators

    def on_train_begin(self, run: ActiveRun) -> None:
        """Score the untouched model, or check that a resumed run still has its best weights."""
        if self._evaluators.development is None:
            return
        if run.step == 0:
            scores = self._scores(run)
            run.state.first_score = scores["dev"]
            self._report(run, scores)
        elif run.main and run.state.best_step >= 0:
            # Damaged weights should stop the run now, not after all the steps.
            check_weights(run.folder / BEST)

    def on_step_end(self, run: ActiveRun, values: dict[str, Tensor]) -> None:
        """Score the model if it is time to."""
        settings = run.recipe.selection
        at_end = run.step == run.steps and settings.last
        due = run.step % settings.every == 0 or at_end
        if self._evaluators.development is None or not due:
            return
        scores = self._scores(run)
        state = run.state
        if state.best_score is None or scores["dev"] > state.best_score:
            state.best_score = scores["dev"]
            state.best_step = run.step
            if run.main:
                # Only the encoder is exported; the modules of the losses can be as large.
                save_weights(run.encoder, run.folder / BEST)
        self._report(run, scores)

    def on_train_end(self, run: ActiveRun) -> None:
        """Give the encoder the best weights."""
        if run.main and self._evaluators.development is not None and run.state.best_step >= 0:
            load_weights(run.encoder, run.folder / BEST)

    def _scores(self, run: ActiveRun) -> dict[str, float]:
        """Return the development score as `dev`, and in the main process what else is watched."""
        check_finite(run)
        run.gather_weights()
        began = run.clock()
        score = 0.0
        if run.main:
            with timed("development scores"):
                score = self._evaluators.development_score()
        run.evaluation_seconds = run.clock() - began
        run.all_evaluation_seconds += run.evaluation_seconds

        # Only the main process scores; the others need the score to stop when it stops.
        shared = [score]
        broadcast_object_list(shared)
        scores = {"dev": shared[0]}
        if run.main:
            for evaluator in self._evaluators.watch:
                scores |= evaluator.scores()
        run.network.train()
        return scores

    def _report(self, run: ActiveRun, scores: dict[str, float]) -> None:
        run.phase.details["dev"] = f"{scores['dev']:.2f}"
        if run.state.best_score is not None:
            run.phase.details["best"] = f"{run.state.best_score:.2f}@{run.state.best_step}"
        run.call("on_evaluate", scores)


class EarlyStopping(TrainingCallback):
    """Ends training if the development score has not improved for some evaluations.

    `selection.patience` of a recipe adds it.

    Args:
        patience: Number of evaluations without a new best score.
    """

    def __init__(self, patience: int) -> None:
        self._patience = patience

    def on_evaluate(self, run: ActiveRun, scores: dict[str, float]) -> None:
        """Stop if the best score is too old."""
        # The first evaluation is the one before training.
        if run.state.best_score is None:
            return
        # Counted in steps, which are in every checkpoint: a resumed run needs no counter.
        since_best = run.step - run.state.best_step
        if since_best >= self._patience * run.recipe.selection.every:
            run.stop(f"no better development score in {self._patience} evaluations")
