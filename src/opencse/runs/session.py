"""The session that contrastive training and pre-training share: processes, the run's folder, record and end."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict
from datetime import timedelta
from pathlib import Path
from typing import Any

from accelerate import Accelerator
from accelerate.utils import InitProcessGroupKwargs, set_seed

from opencse.encoder.precision_choice import describe
from opencse.errors import OpencseError
from opencse.io.files import write_json, write_text
from opencse.runs.checkpoint import Checkpoints
from opencse.runs.folder import check_folder, environment, prepare_folder, read_record
from opencse.runs.log import check_trackers
from opencse.runs.loop import TrainingLoop, TrainingOutcome
from opencse.runs.memory import keep_freed_memory
from opencse.runs.precision import settle_training_precision
from opencse.settings import Training
from opencse.settings.decode import decode

Notify = Callable[[str], None]


class TrainingSession:
    """One training run in its folder, on one process or several.

    Args:
        out: The run's folder; new, or see `resume` and `overwrite`.
        resume: Continue from the last checkpoint in `out`, if it holds one.
        overwrite: Replace the run that `out` holds.
        track: Further trackers: `tensorboard`, `wandb`, `trackio`.
        progress: Show progress bars.
        notify: Receives short notes for the user; the main process's alone.

    Raises:
        OpencseError: `out` is occupied, there is nothing to resume, or a tracker is unknown.
    """

    def __init__(
        self,
        out: str | Path,
        *,
        resume: bool,
        overwrite: bool,
        track: Sequence[str] = (),
        progress: bool = True,
        notify: Notify = lambda _: None,
    ) -> None:
        self.folder = Path(out)
        self.resume, self.overwrite, self.track = resume, overwrite, tuple(track)
        check_folder(self.folder, resume=resume, overwrite=overwrite)
        check_trackers(list(track))
        # While the main process tokenises or runs a teacher over the corpus, the others wait longer than by default.
        patience = InitProcessGroupKwargs(timeout=timedelta(days=1))
        tracking = self.folder / "tracking" if track else None
        self.accelerator = Accelerator(log_with=list(track) or None, project_dir=tracking, kwargs_handlers=[patience])
        self.main: bool = self.accelerator.is_main_process
        self.device = self.accelerator.device
        self.on_cpu: bool = self.device.type == "cpu"
        self.progress = progress and self.main
        self.notify: Notify = notify if self.main else lambda _: None
        if self.accelerator.num_processes > 1:
            os.environ["TOKENIZERS_PARALLELISM"] = "false"
        if self.on_cpu:
            keep_freed_memory()

    def main_first(self) -> AbstractContextManager[None]:
        """Let the main process go first through a block, such as one that fills a cache."""
        return self.accelerator.main_process_first()

    def settle(self, training: Training, config: Any) -> Training:
        """Return the settings with the precision in place of `auto`, and say where and in which one the run computes.

        Args:
            training: Settings of the loop.
            config: Configuration of the model, for the shapes that are probed.
        """
        settled = settle_training_precision(training, config, self.accelerator, self.folder if self.resume else None)
        kept = training.precision == "auto" and self.resume
        self.notify(f"training {describe(settled.precision if kept else training.precision, config, self.device)}")
        return settled

    def seed(self, seed: int, *, per_process: bool = False) -> None:
        """Seed every generator, the same way in each process or `per_process` (for dropout and masks)."""
        set_seed(seed, device_specific=per_process)

    def finished(self, fingerprint: Mapping[str, str]) -> TrainingOutcome | None:
        """Return the outcome of the run in the folder if it is to be resumed and is complete.

        Raises:
            OpencseError: It was begun with another recipe, corpus or backbone.
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

    def checkpoints(self, training: Training, fingerprint: Mapping[str, str]) -> Checkpoints:
        """Return the run's checkpoints; a damaged one is named to the user."""
        return Checkpoints(self.folder / "checkpoints", training.keep_checkpoints, dict(fingerprint), self.notify)

    def begin(self, record: Mapping[str, Any], files: Mapping[str, str]) -> None:
        """Make the folder and write what the run begins with.

        Args:
            record: What `run.json` says of the run.
            files: Further text files by name, such as the resolved recipe.
        """
        if self.main:
            prepare_folder(self.folder, overwrite=self.overwrite)
            write_json(self.folder / "run.json", self._placed(record))
            write_json(self.folder / "environment.json", environment())
            for name, text in files.items():
                write_text(self.folder / name, text)
        self.accelerator.wait_for_everyone()
        if self.track:
            self.accelerator.init_trackers("opencse", config={"backbone": str(record["backbone"])})

    def end(
        self, loop: TrainingLoop, record: Mapping[str, Any], outcome: TrainingOutcome, save: Callable[[], None]
    ) -> None:
        """Save the model, complete the record, and remove what only a resumption needs.

        Args:
            loop: The finished loop.
            record: As in `begin`.
            outcome: What the loop returned.
            save: Writes the model; called in the main process alone.
        """
        if self.main:
            save()
            write_json(self.folder / "run.json", {**self._placed(record), "outcome": asdict(outcome)})
            loop.clean_up()
        if self.track:
            self.accelerator.end_training()
        self.accelerator.wait_for_everyone()

    def _placed(self, record: Mapping[str, Any]) -> dict[str, Any]:
        return {**record, "device": str(self.device)}
