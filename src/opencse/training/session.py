"""One training run in its folder: processes, record, loop and end."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch.distributed
from accelerate import Accelerator
from accelerate.utils import set_seed

from opencse.encoder.backbone import Backbone
from opencse.encoder.device import join_processes
from opencse.encoder.precision import describe, resolve_precision
from opencse.foundation.decode import decode
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import write_json, write_text
from opencse.foundation.lock import locked
from opencse.foundation.measure import Measures
from opencse.foundation.progress import Notify, timed
from opencse.recipes import Recipe
from opencse.recipes.settings import Training
from opencse.training.batches import BatchSampler
from opencse.training.checkpoint import Checkpoints
from opencse.training.folder import (
    begun_precision,
    begun_step_limit,
    check_folder,
    describe_environment,
    prepare_folder,
    read_record,
)
from opencse.training.log import check_trackers
from opencse.training.loop import LoopHost, TrainingLoop, TrainingOutcome
from opencse.training.network import Network

if TYPE_CHECKING:
    from accelerate import Accelerator

_KEPT_CHECKPOINTS = 2  # a damaged one costs only the steps since the one before it
_MEETING = timedelta(minutes=5)  # for all processes to start; one may wait 2.4 times as long
_PATIENCE = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class RunControl:
    """How a training run is carried out, whatever it trains.

    Attributes:
        folder: The run's folder; new, unless `resume` or `overwrite` is set.
        resume: Continue from the last checkpoint in the folder, if there is one.
        overwrite: Replace the run in the folder.
        track: Trackers beside `metrics.jsonl`: `tensorboard`, `wandb`, `trackio`.
        progress: Show progress bars.
        notify: Receives short notes for the user.
        deadline: Time by `time.perf_counter` at which training is to end, as for `LoopHost`.
    """

    folder: Path
    resume: bool = False
    overwrite: bool = False
    track: tuple[str, ...] = ()
    progress: bool = True
    notify: Notify = lambda _: None
    deadline: float | None = None


_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # from <malloc.h>


def keep_freed_memory() -> bool:
    """Tell the C library to keep freed memory; call it once, before training on a CPU.

    A training step frees its activations and gradients, and the next one allocates the same sizes again. By default
    glibc returns blocks above 32 MiB (the gradient of a word-embedding table) and the free end of its heap to the
    system, which then clears every page again in each step. The price is that the process never shrinks.

    Returns:
        Whether it took effect, which needs glibc.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):  # not glibc
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, 1 << 30)) and bool(mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1))


def settle_training_precision(
    training: Training, config: Any, accelerator: Accelerator, resumed: Path | None
) -> Training:
    """Return the settings with `bf16` or `fp32` in place of `auto`, the same in every process; fp16 needs a GPU.

    Args:
        training: Settings of the loop.
        config: Configuration of the model.
        accelerator: Devices and processes.
        resumed: Folder of the run to resume, whose precision is kept; None for a new run.
    """
    if training.precision == "fp16" and accelerator.device.type == "cpu":
        return replace(training, precision="fp32")
    if training.precision != "auto":
        return training
    found: list[Any] = [None if resumed is None else begun_precision(resumed)]
    if found[0] is None and accelerator.is_main_process:
        found = [resolve_precision("auto", config, accelerator.device)]
    if accelerator.num_processes > 1:
        from accelerate.utils import broadcast_object_list

        broadcast_object_list(found)
    return replace(training, precision=found[0])


@contextmanager
def joined(folder: Path) -> Iterator[None]:
    """Meet the other processes of a run; the main one holds the lock of the folder, and alone writes into it.

    Raises:
        OpencseError: Another run holds the lock, or the processes disagree about their number.
    """
    main = join_processes(_MEETING).is_main_process
    with locked(folder) if main else nullcontext():
        yield


class TrainingSession:
    """One training run in its folder, on one process or several that are `joined`.

    Progress bars and notes come from the main process only.

    Raises:
        OpencseError: The folder is occupied, there is nothing to resume, or a tracker is unknown.
    """

    def __init__(self, control: RunControl) -> None:
        self.folder, self.resume, self.overwrite = control.folder, control.resume, control.overwrite
        self.track, self._deadline = control.track, control.deadline
        track, resume, progress, notify = control.track, control.resume, control.progress, control.notify
        check_folder(self.folder, resume=resume, overwrite=self.overwrite)
        check_trackers(list(track))
        self._step_limit = begun_step_limit(self.folder) if resume else None
        tracking = self.folder / "tracking" if track else None
        self.accelerator = Accelerator(log_with=list(track) or None, project_dir=tracking)
        self.main: bool = self.accelerator.is_main_process
        self.device = self.accelerator.device
        self.on_cpu: bool = self.device.type == "cpu"
        self.progress = progress and self.main
        self.notify: Notify = notify if self.main else lambda _: None
        if self.accelerator.num_processes > 1:
            os.environ["TOKENIZERS_PARALLELISM"] = "false"
            # While the main process tokenises or runs a teacher over the corpus, the others wait for long.
            # One that has ended is noticed at once, because its connections are closed.
            torch.distributed.distributed_c10d._set_pg_timeout(_PATIENCE)
        if self.on_cpu:
            keep_freed_memory()

    def main_first(self) -> AbstractContextManager[None]:
        """Return a context that the main process enters before the others, for example to fill a cache."""
        return self.accelerator.main_process_first()

    def settle(self, training: Training, backbone: Backbone) -> Training:
        """Return the settings with the precision of this run, and report it and the device.

        Args:
            training: Settings of the loop.
            backbone: The model.
        """
        settled = settle_training_precision(
            training, backbone.config, self.accelerator, self.folder if self.resume else None
        )
        asked = settled.precision if self.resume or training.precision != "auto" else "auto"
        self.notify(f"training {describe(asked, backbone.config, self.device)}")
        if settled.precision != training.precision == "fp16":
            self.notify("fp16 does not run on a CPU: fp32 takes its place")
        return settled

    def seed(self, seed: int, *, per_process: bool = False) -> None:
        """Seed every generator, the same way in each process or `per_process` (for dropout and masks)."""
        set_seed(seed, device_specific=per_process)

    def finished(self, fingerprint: Mapping[str, str]) -> TrainingOutcome | None:
        """Return the outcome if the run is to be resumed and is complete, else None.

        Raises:
            OpencseError: The run was begun with another recipe, corpus or backbone.
        """
        path = self.folder / "run.json"
        if not self.resume or not path.is_file():
            return None
        record = read_record(self.folder)
        for name, value in fingerprint.items():
            if record["fingerprint"].get(name) != value:
                raise OpencseError(
                    f"{self.folder}: was begun with another {name}",
                    "Resume with what the run began with, use --overwrite to start anew, or another output folder.",
                )
        if "outcome" not in record or not (self.folder / "model").is_dir():
            return None
        self.notify(f"{self.folder}: this run is finished; nothing to resume")
        return decode(TrainingOutcome, record["outcome"], f"{path}: outcome")

    def begin(self, record: Mapping[str, Any], files: Mapping[str, str]) -> None:
        """Create the folder and write the record, the environment and the settings of the run.

        Args:
            record: The contents of `run.json`.
            files: Further text files by name, such as the resolved recipe.
        """
        if self.main:
            prepare_folder(self.folder, overwrite=self.overwrite)
            write_json(self.folder / "run.json", self._placed(record))
            write_json(self.folder / "environment.json", describe_environment())
            for name, text in files.items():
                write_text(self.folder / name, text)
        self.accelerator.wait_for_everyone()
        if self.track:
            self.accelerator.init_trackers("opencse", config={"backbone": str(record["backbone"])})

    def train(
        self,
        network: Network,
        assembler: Callable[[Any], Any],
        rows: int,
        recipe: Recipe,
        measures: Measures,
        record: Mapping[str, Any],
        finish: Callable[[TrainingOutcome], TrainingOutcome],
    ) -> TrainingOutcome:
        """Train to the end, save the model, complete the record and remove the checkpoints.

        Args:
            network: The network, on the device of the session.
            assembler: Makes a batch of row numbers.
            rows: Number of training rows.
            recipe: The recipe.
            measures: What is measured, started with the encoder of the network.
            record: As in `begin`; its fingerprint is that of the checkpoints.
            finish: Writes the model, and returns the outcome with what it measured; called in the main process only.
        """
        training = recipe.training
        folder, fingerprint = self.folder / "checkpoints", dict(record["fingerprint"])

        def keep_step_limit(steps: int) -> None:
            self._step_limit = steps
            write_json(self.folder / "run.json", self._placed(record))

        host = LoopHost(
            folder=self.folder,
            accelerator=self.accelerator,
            checkpoints=Checkpoints(folder, _KEPT_CHECKPOINTS, fingerprint, self.notify),
            progress=self.progress,
            notify=self.notify,
            deadline=self._deadline,
            step_limit=self._step_limit,
            keep_step_limit=keep_step_limit,
        )
        parts = training.accumulate * self.accelerator.num_processes
        sampler = BatchSampler(rows, min(training.batch_size, rows), training.seed, parts)
        loop = TrainingLoop(network, assembler, sampler, recipe, measures, host)
        with timed("training steps"):
            outcome = loop.run(self.resume)
        if self.main:
            outcome = finish(outcome)
            write_json(self.folder / "run.json", {**self._placed(record), "outcome": asdict(outcome)})
            shutil.rmtree(folder, ignore_errors=True)
            loop.best_path.unlink(missing_ok=True)
        if self.track:
            self.accelerator.end_training()
        self.accelerator.wait_for_everyone()
        return outcome

    def _placed(self, record: Mapping[str, Any]) -> dict[str, Any]:
        limit = {} if self._step_limit is None else {"step_limit": self._step_limit}
        return {**record, **limit, "device": str(self.device)}
