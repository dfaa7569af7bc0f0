"""The log of a run, `metrics.jsonl`: means of losses and reports, and development scores."""

from __future__ import annotations

import contextlib
import json
import math
from pathlib import Path
from typing import Any

from torch import Tensor

from opencse.foundation.errors import OpencseError
from opencse.foundation.files import write_text
from opencse.training.callbacks import ActiveRun, TrainingCallback


class MetricsLog(TrainingCallback):
    """Writes a line every `training.log_every` steps, and one for each evaluation."""

    def on_train_begin(self, run: ActiveRun) -> None:
        """Drop what a resumed run will write again."""
        self._path = run.folder / "metrics.jsonl"
        if run.main:
            drop_lines_after(self._path, run.step)

    def on_step_end(self, run: ActiveRun, values: dict[str, Tensor]) -> None:
        """Add the values to their running sums, and write the means if a line is due."""
        sums: dict[str, Any] = run.state.sums
        counts = run.state.counts
        for name, value in values.items():
            # The sums stay on the device until a line is written: reading one waits for the device.
            sums[name] = sums.get(name, 0.0) + value.detach()
            # Each name has its own count, because a rare view is not in every batch.
            counts[name] = counts.get(name, 0) + 1
        if run.session.device.type == "cpu":
            check_finite(run)
        if run.step % run.recipe.training.log_every == 0 or run.step == run.steps:
            self._write(run)

    def on_evaluate(self, run: ActiveRun, scores: dict[str, float]) -> None:
        """Write the scores."""
        self._append(run, scores)

    def on_train_end(self, run: ActiveRun) -> None:
        """Write the last line, if training was stopped before one was due."""
        if run.state.sums:
            self._write(run)

    def _write(self, run: ActiveRun) -> None:
        check_finite(run)
        state = run.state
        means = {name: float(value) / state.counts[name] for name, value in state.sums.items()}
        means["lr"] = run.optimizer.param_groups[0]["lr"]
        means["seconds"] = round(run.seconds, 2)
        self._append(run, means)
        run.phase.details["loss"] = f"{means['loss']:.4f}"
        state.sums = {}
        state.counts = {}
        run.call("on_log", means)

    def _append(self, run: ActiveRun, values: dict[str, float]) -> None:
        if run.main:
            line: dict[str, Any] = {"step": run.step, **values}
            with self._path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")


def check_finite(run: ActiveRun) -> None:
    """Check the loss and the gradients since the last line of the log; this waits for the device.

    Raises:
        OpencseError: One of them is infinite or not a number.
    """
    wrong = [name for name, value in run.state.sums.items() if not math.isfinite(float(value))]
    failed = [name for name in ("loss", "grad_norm") if name in wrong]
    if not failed:
        return
    losses = [name for name in wrong if name not in failed]
    latest = run.checkpoints.latest()
    if latest is None:
        last_good = "there is no checkpoint yet"
    else:
        last_good = f"the last good checkpoint is {latest}"
    raise OpencseError(
        f"the {failed[0]} is not finite by step {run.step} (loss {', '.join(losses) or 'sum'}); "
        f"{last_good}",
        "Lower the learning rate (--set optimizer.lr=…), or use --set training.precision=fp32.",
    )


def drop_lines_after(path: Path, step: int) -> None:
    """Keep the lines of a log up to a step, from which a run continues.

    The last line of a killed run may be incomplete; such lines are dropped as well.
    """
    lines = []
    if step and path.is_file():
        for line in path.read_text(encoding="utf-8", errors="replace").split("\n"):
            with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
                if json.loads(line)["step"] <= step:
                    lines.append(line + "\n")
    write_text(path, "".join(lines))
