"""Experiment trackers, through accelerate: TensorBoard, Weights & Biases, MLflow and others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from accelerate.tracking import GeneralTracker, filter_trackers, get_available_trackers

from opencse.foundation.errors import OpencseError
from opencse.foundation.plugins import TRACKERS, ways_to_add
from opencse.foundation.reading import error_reason
from opencse.training.callbacks import ActiveRun, TrainingCallback

PROJECT = "opencse"
"""Name of the project in a tracker."""

FOLDER = "tracking"
"""Folder below that of the run, for trackers that write files."""

# Settings under which a tracker writes to the run's folder and calls no server. A variable that the
# user has set already counts instead. Trackers without an entry need none.
_OFFLINE: dict[str, dict[str, str]] = {
    "wandb": {"WANDB_MODE": "offline", "WANDB_DIR": "{folder}"},
    "mlflow": {"MLFLOW_TRACKING_URI": "sqlite:///{folder}/mlflow.db"},
    "clearml": {"CLEARML_OFFLINE_MODE": "1"},
    "swanlab": {"SWANLAB_MODE": "offline"},
    "tensorboard": {},
    "aim": {},
    "dvclive": {},
    "trackio": {},
}


class Tracking(TrainingCallback):
    """Sends losses, learning rates and scores to trackers, offline unless the user chooses otherwise.

    Args:
        trackers: Names separated by commas, one tracker, or a sequence of names and trackers. A
            name is one of accelerate's, or the name of a registered class (`TRACKERS`).

    Raises:
        OpencseError: A tracker is unknown, or its package is not installed.
    """

    def __init__(self, trackers: str | GeneralTracker | Sequence[str | GeneralTracker]) -> None:
        self._started = False
        # The untouched model is scored before training begins.
        self._early: list[tuple[int, dict[str, float]]] = []
        self._trackers: list[str | GeneralTracker] = []
        for tracker in _listed(trackers):
            _check(tracker)
            if tracker not in self._trackers:
                self._trackers.append(tracker)

    def on_train_begin(self, run: ActiveRun) -> None:
        """Start the trackers."""
        folder = (run.folder / FOLDER).resolve()
        if run.main:
            folder.mkdir(exist_ok=True)
        self._go_offline(folder)
        accelerator = run.session.accelerator
        accelerator.project_configuration.logging_dir = str(folder)
        started = []
        for tracker in self._trackers:
            if isinstance(tracker, str) and tracker in TRACKERS:
                tracker = _registered(tracker, folder)
            # accelerate leaves it to a tracker of the user to be silent in the other processes.
            own = isinstance(tracker, GeneralTracker) and tracker.main_process_only
            if run.main or not own:
                started.append(tracker)
        accelerator.log_with = filter_trackers(started, str(folder))
        settings = {
            "recipe": run.recipe.name,
            "variant": run.recipe.variant,
            "seed": run.recipe.training.seed,
            "batch_size": run.recipe.training.batch_size,
            "lr": run.recipe.optimizer.lr,
            "steps": run.steps,
        }
        accelerator.init_trackers(PROJECT, config=settings)
        self._started = True
        for step, values in self._early:
            accelerator.log(values, step=step)

    def on_log(self, run: ActiveRun, values: dict[str, float]) -> None:
        """Send the means of a line of the log."""
        run.session.accelerator.log(_numbers("train", values), step=run.step)

    def on_evaluate(self, run: ActiveRun, scores: dict[str, float]) -> None:
        """Send the scores."""
        values = _numbers("eval", scores)
        if self._started:
            run.session.accelerator.log(values, step=run.step)
        else:
            self._early.append((run.step, values))

    def on_train_end(self, run: ActiveRun) -> None:
        """Close the trackers."""
        for tracker in run.session.accelerator.trackers:
            tracker.finish()

    def _go_offline(self, folder: Path) -> None:
        for tracker in self._trackers:
            variables = _OFFLINE.get(tracker, {}) if isinstance(tracker, str) else {}
            for variable, value in variables.items():
                os.environ.setdefault(variable, value.format(folder=folder))


def _listed(trackers: Any) -> list[Any]:
    """Return trackers as a list: names separated by commas, one tracker, or several."""
    if isinstance(trackers, str):
        return [name.strip() for name in trackers.split(",")]
    if isinstance(trackers, Sequence):
        return list(trackers)
    return [trackers]


def _check(tracker: Any) -> None:
    """Check that there is such a tracker, and that its package is installed."""
    if isinstance(tracker, GeneralTracker):
        return
    if not isinstance(tracker, str):
        raise OpencseError(
            f"the tracker {type(tracker).__name__} is none of accelerate's",
            "Derive its class from accelerate.tracking.GeneralTracker.",
        )
    if tracker in TRACKERS:
        return
    if tracker not in _OFFLINE:
        raise OpencseError(
            f"there is no tracker {tracker!r}",
            f"Known: {', '.join(sorted([*_OFFLINE, *TRACKERS]))}. {ways_to_add(TRACKERS.group)}",
        )
    installed = {str(name) for name in get_available_trackers()}
    if tracker not in installed:
        raise OpencseError(
            f"the tracker {tracker} is not installed", f"Install it: pip install {tracker}."
        )


def _registered(name: str, folder: Path) -> GeneralTracker:
    """Return a tracker of a registered class.

    Raises:
        OpencseError: The class is none of accelerate's, or lacks a part of it.
    """
    kind = TRACKERS[name]
    remedy = "Compare accelerate.tracking.GeneralTracker."
    try:
        if kind.requires_logging_directory:
            tracker = kind(PROJECT, str(folder))
        else:
            tracker = kind(PROJECT)
    except (AttributeError, NotImplementedError, TypeError) as error:
        raise OpencseError(
            f"the tracker {name} cannot be made ({error_reason(error)})", remedy
        ) from error
    if not isinstance(tracker, GeneralTracker):
        raise OpencseError(f"the tracker {name} is no GeneralTracker of accelerate", remedy)
    return tracker


def _numbers(group: str, values: dict[str, float]) -> dict[str, float]:
    """Return the values with the name of their group, by which trackers arrange charts."""
    return {f"{group}/{name}": float(value) for name, value in values.items()}
