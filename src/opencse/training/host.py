"""What a training loop runs in: folder, devices, checkpoints, notes and limits."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opencse.foundation.progress import Notify
from opencse.training.checkpoint import Checkpoints

if TYPE_CHECKING:
    from accelerate import Accelerator


@dataclass(frozen=True, kw_only=True)
class LoopHost:
    """What a training loop runs in.

    Attributes:
        folder: Folder for metrics, checkpoints and the best weights.
        accelerator: Devices and processes.
        checkpoints: The checkpoints of the run.
        progress: Show progress.
        notify: Receives the expected time, after the first steps.
        deadline: Time by `time.perf_counter` at which training is to end. The number of steps that fit is computed
            once, after the first `MEASURED_STEPS`; the schedule then runs to its end by that number.
        step_limit: That number, if the run is resumed and had it.
        keep_step_limit: Receives the number when it is computed, in the main process.
    """

    folder: Path
    accelerator: Accelerator
    checkpoints: Checkpoints
    progress: bool = True
    notify: Notify = lambda _: None
    deadline: float | None = None
    step_limit: int | None = None
    keep_step_limit: Callable[[int], None] = lambda _: None
