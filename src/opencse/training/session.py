"""One training run in its folder: its processes, its device and precision, its record, and the card of its model."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from functools import cached_property
from pathlib import Path
from typing import Any
from uuid import uuid4

import torch.distributed
from accelerate import Accelerator
from accelerate.utils import DistributedType, broadcast_object_list, gather_object

from opencse.encoder.backbone import Backbone
from opencse.encoder.device import NO_AUTOCAST, describe, resolve_precision
from opencse.foundation.cache import Together
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import remove_left_overs, write_json, write_text
from opencse.foundation.progress import Notify
from opencse.foundation.toml_tables import decode
from opencse.recipes import Recipe
from opencse.recipes.settings import Training
from opencse.training.folder import check_folder, describe_environment, prepare_folder, read_record

_PATIENCE = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class RunControl:
    """How a training run is carried out, whatever it trains.

    Attributes:
        folder: The run's folder; new, unless `resume` or `overwrite` is set.
        resume: Continue from the last checkpoint in the folder, if there is one.
        overwrite: Replace the run in the folder.
        progress: Show progress bars.
        notify: Receives short notes for the user.
        deadline: Time by `time.perf_counter` at which training is to end. The number of steps that
            fit is computed once, after the first steps; the schedule then runs to its end by that
            number.
        callbacks: Called around the training steps, after those of opencse itself.
        language: Likely language of the text, for the model card; None if it is unknown.
    """

    folder: Path
    resume: bool = False
    overwrite: bool = False
    progress: bool = True
    notify: Notify = lambda _: None
    deadline: float | None = None
    callbacks: Sequence[Any] = ()
    language: str | None = None


@dataclass(frozen=True)
class TrainingOutcome:
    """Result of a training run.

    Attributes:
        steps: Optimiser steps done.
        best_step: The step whose weights were kept; None without a development set (the last
            weights are kept).
        best_score: The development score of the weights that were kept.
        first_score: The development score before the first step.
        seconds: Training time, evaluation included.
    """

    steps: int
    best_step: int | None
    best_score: float | None
    first_score: float | None
    seconds: float


def wait_for_long() -> None:
    """Let processes wait for each other for a day, once they have met.

    Processes that tokenise, or run a teacher over the corpus, may wait for the slowest for long. One
    that has ended is noticed at once, because its connections are closed.
    """
    if torch.distributed.is_initialized():
        torch.distributed.distributed_c10d._set_pg_timeout(_PATIENCE)


class TrainingSession:
    """One training run in its folder, on one process or several that have met (`join_processes`).

    Progress bars and notes come from the main process only.

    Attributes:
        begun: The record of the run to resume; empty for a new run.
        record: The contents of `run.json`.

    Raises:
        OpencseError: The folder is occupied, or there is nothing to resume.
    """

    def __init__(self, control: RunControl) -> None:
        self.folder = control.folder
        self.resume = control.resume
        self.overwrite = control.overwrite
        self.deadline = control.deadline
        if self.resume and int(os.environ.get("RANK") or 0) > 0:
            check_copy(self.folder)
        check_folder(self.folder, resume=self.resume, overwrite=self.overwrite)
        self.begun: dict[str, Any] = read_record(self.folder) if self.resume else {}
        self.record: dict[str, Any] = {}
        # The folder was checked before this, which takes seconds on a cluster. The recipe chooses
        # the precision, not a variable of the environment.
        self.accelerator = Accelerator(mixed_precision="no")
        if self.accelerator.distributed_type == DistributedType.FSDP:
            raise OpencseError(
                "FSDP in the configuration of accelerate is not supported",
                "Remove it, and pass --set training.shard_weights=true.",
            )
        self.main: bool = self.accelerator.is_main_process
        self.device = self.accelerator.device
        self.on_cpu: bool = self.device.type == "cpu"
        self.progress = control.progress and self.main
        self.notify: Notify = control.notify if self.main else lambda _: None
        if self.accelerator.num_processes > 1:
            os.environ["TOKENIZERS_PARALLELISM"] = "false"
            wait_for_long()

    def together(self) -> Together:
        """Return the processes that build a store of tokens or vectors together: those of this machine.

        Machines that share their cache build it at the same time, each shard by whoever is first.
        """
        if self.accelerator.num_processes == 1:
            return Together()
        rank = self.accelerator.local_process_index
        count = int(os.environ.get("LOCAL_WORLD_SIZE", self.accelerator.num_processes))
        return Together(rank, count, self.accelerator.wait_for_everyone)

    @cached_property
    def shares_folder(self) -> bool:
        """Whether all processes see the run's folder of the main process; all must ask for it together."""
        if self.accelerator.num_processes == 1:
            return True
        probe = [f".{uuid4().hex}.tmp"]
        if self.main:
            (self.folder / probe[0]).touch()
        broadcast_object_list(probe)
        seen = gather_object([(self.folder / probe[0]).exists()])
        if self.main:
            (self.folder / probe[0]).unlink()
        return all(seen)

    def settle(self, training: Training, backbone: Backbone) -> Training:
        """Return the settings with the precision of this run, which is the same in every process.

        The precision and the device are reported.

        `auto` becomes that of the run to resume, or the faster one of `bf16` and `fp32`; `fp16`
        needs an accelerator.

        Args:
            training: Settings of the loop.
            backbone: The model.
        """
        requested: Any = training.precision
        if requested == "fp16" and self.on_cpu:
            self.notify("fp16 does not run on a CPU: fp32 takes its place")
            requested = "fp32"
        if requested != "fp32" and backbone.config.get("model_type") in NO_AUTOCAST:
            self.notify(f"a {backbone.config['model_type']} trains in fp32 only")
            requested = "fp32"
        precision = requested
        if requested == "auto":
            # A run that continues keeps what its start found to be faster.
            precision = self.begun.get("precision", "auto")
        if precision == "auto" and self.main:
            precision = resolve_precision("auto", backbone.config, self.device)
        shared = [precision]
        # Machines of one run may differ in what is fastest, but must compute alike.
        broadcast_object_list(shared)
        self.notify(
            f"training {describe(shared[0] if self.resume else requested, backbone.config, self.device)}"
        )
        return replace(training, precision=shared[0])

    def compare_processes(self, facts: Mapping[str, str]) -> None:
        """Check that all processes of this run were started with the same input.

        Args:
            facts: What must be the same everywhere, by name.

        Raises:
            OpencseError: A process has another recipe, corpus or version; raised in all of them.
        """
        if self.accelerator.num_processes == 1:
            return
        everyone = gather_object([dict(facts)])
        for rank, others in enumerate(everyone):
            for name in {**everyone[0], **others}:
                if everyone[0].get(name) != others.get(name):
                    raise OpencseError(
                        f"process {rank} has another {name} than process 0"
                        f"{_differing_lines(everyone[0].get(name), others.get(name))}",
                        "Start every process with the same command, files and packages.",
                    )

    def _check_number(self, sharded: bool) -> None:
        """Check that a run is resumed by as many processes as it was begun with, whose generators it continues.

        With `training.shard_weights`, which is for runs that outlive a machine, another number is
        only reported.
        """
        begun = self.begun.get("processes")
        now = self.accelerator.num_processes
        if not self.resume or begun is None or begun == now:
            return
        if sharded:
            self.notify(
                f"{self.folder}: was begun with {begun} processes, and continues with {now}: its "
                "dropout masks are other ones from here on"
            )
        else:
            raise OpencseError(
                f"{self.folder}: was begun with {begun} processes, and would continue with {now}: "
                "other rows and dropout masks",
                f"Resume it with {begun} (torchrun --nproc_per_node {begun} …), or start over with "
                "--overwrite.",
            )

    def finished(
        self, fingerprint: Mapping[str, str], sharded: bool = False
    ) -> TrainingOutcome | None:
        """Return the outcome if the run is to be resumed and is complete, else None.

        Args:
            fingerprint: What the run must share with its beginning.
            sharded: Whether its weights are divided among the processes.

        Raises:
            OpencseError: The run was begun with another recipe, corpus or backbone.
        """
        for name, value in fingerprint.items():
            if self.resume and self.begun["fingerprint"].get(name) != value:
                raise OpencseError(
                    f"{self.folder}: was begun with another {name}",
                    "Resume with what the run began with, use --overwrite to start again, or another output folder.",
                )
        if "outcome" not in self.begun or not (self.folder / "model").is_dir():
            self._check_number(sharded)
            return None
        self.notify(f"{self.folder}: this run is finished; nothing to resume")
        return decode(
            TrainingOutcome, self.begun["outcome"], f"{self.folder / 'run.json'}: outcome"
        )

    def begin(self, record: Mapping[str, Any]) -> None:
        """Create the folder and write the record, the recipe and the environment of the run.

        Args:
            record: The contents of `run.json`, with the fingerprint.
        """
        limit = {key: value for key, value in self.begun.items() if key == "step_limit"}
        self.record = {
            **record,
            **limit,
            "device": str(self.device),
            "processes": self.accelerator.num_processes,
        }
        if self.main:
            prepare_folder(self.folder, overwrite=self.overwrite)
            for folder in (self.folder, self.folder / "checkpoints"):
                remove_left_overs(folder)
            self.write_record()
            write_json(self.folder / "environment.json", describe_environment())
            write_text(self.folder / "recipe.toml", record["fingerprint"]["recipe"])
        self.accelerator.wait_for_everyone()

    def write_record(self, **further: Any) -> None:
        """Write the record of the run, with further values."""
        self.record |= further
        if self.main:
            write_json(self.folder / "run.json", self.record)

    def end(self, outcome: TrainingOutcome, *needless: Path) -> None:
        """Complete the record, and remove what only an interrupted run needs; called in the main process only."""
        self.write_record(outcome=asdict(outcome))
        for path in needless:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def check_copy(folder: Path) -> None:
    """Check that a process other than the first one finds the run that it is to continue.

    Raises:
        OpencseError: The folder of the first machine is neither shared nor copied.
    """
    if not (folder / "run.json").is_file():
        raise OpencseError(
            f"{folder}: this machine has no copy of the run to resume",
            "Without a shared file system, copy the folder from the first machine to all others.",
        )


def _differing_lines(first: str | None, other: str | None) -> str:
    """Return the first lines in which two texts of several lines differ, in brackets; empty for other texts."""
    if first is None or other is None or "\n" not in first:
        return ""
    of_first = first.splitlines()
    of_other = other.splitlines()
    missing = [line for line in of_first if line not in of_other]
    more = [line for line in of_other if line not in of_first]
    return f" ({'; '.join(more[:2])} in place of {'; '.join(missing[:2])})"


def run_record(
    recipe: Recipe, backbone: Backbone, fingerprint: Mapping[str, str], read: Mapping[str, Any]
) -> dict[str, Any]:
    """Return what `run.json` says of any run; `read` names the text, and how many rows of it were read."""
    of_recipe = {
        "recipe": recipe.name,
        "variant": recipe.variant,
        "family": recipe.family,
        "backbone": backbone.name,
    }
    training = {
        "seed": recipe.training.seed,
        "precision": recipe.training.precision,
        "fingerprint": fingerprint,
    }
    return {**of_recipe, **read, **training}
