"""Experiment trackers, through accelerate: TensorBoard, Weights & Biases, MLflow and others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from accelerate.tracking import filter_trackers, get_available_trackers

from opencse.foundation.errors import OpencseError
from opencse.training.callbacks import ActiveRun, TrainingCallback

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
    """Sends losses, learning rates and scores to trackers, offline unless the user says otherwise.

    Args:
        names: The trackers.

    Raises:
        OpencseError: A tracker is unknown, or its package is not installed.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self._names = list(names)
        installed = {str(tracker) for tracker in get_available_trackers()}
        for name in self._names:
            if name not in _OFFLINE:
                raise OpencseError(
                    f"there is no tracker {name!r}", f"Known: {', '.join(sorted(_OFFLINE))}."
                )
            if name not in installed:
                raise OpencseError(
                    f"the tracker {name} is not installed", f"Install it: pip install {name}."
                )

    def on_train_begin(self, run: ActiveRun) -> None:
        """Start the trackers."""
        folder = (run.folder / FOLDER).resolve()
        if run.main:
            folder.mkdir(exist_ok=True)
        self._go_offline(folder)
        accelerator = run.session.accelerator
        accelerator.project_configuration.logging_dir = str(folder)
        accelerator.log_with = filter_trackers(self._names, str(folder))
        settings = {
            "recipe": run.recipe.name,
            "variant": run.recipe.variant,
            "seed": run.recipe.training.seed,
            "batch_size": run.recipe.training.batch_size,
            "lr": run.recipe.optimizer.lr,
            "steps": run.steps,
        }
        accelerator.init_trackers("opencse", config=settings)

    def on_log(self, run: ActiveRun, values: dict[str, float]) -> None:
        """Send the means of a line of the log."""
        run.session.accelerator.log(_numbers("train", values), step=run.step)

    def on_evaluate(self, run: ActiveRun, scores: dict[str, float]) -> None:
        """Send the scores."""
        run.session.accelerator.log(_numbers("eval", scores), step=run.step)

    def on_train_end(self, run: ActiveRun) -> None:
        """Close the trackers."""
        for tracker in run.session.accelerator.trackers:
            tracker.finish()

    def _go_offline(self, folder: Path) -> None:
        for name in self._names:
            for variable, value in _OFFLINE[name].items():
                os.environ.setdefault(variable, value.format(folder=folder))


def _numbers(group: str, values: dict[str, float]) -> dict[str, float]:
    """Return the values with the name of their group, by which trackers arrange charts."""
    return {f"{group}/{name}": float(value) for name, value in values.items()}
