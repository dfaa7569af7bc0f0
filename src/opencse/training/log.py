"""The log of a run: `metrics.jsonl`, and trackers by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO, Any

from opencse.foundation.errors import OpencseError
from opencse.foundation.files import write_text

TRACKERS = ("tensorboard", "wandb", "trackio")


class MetricsLog:
    """A log with one JSON object per line: `{"step": 25, "loss": …, "lr": …}` or `{"step": 125, "dev": …}`.

    Args:
        path: The file; a resumed run drops the lines after `step`, as it repeats these steps.
        step: The step that the run resumes from; 0 for a new run.
        tracker: An `Accelerator` with its trackers started, or None.
    """

    def __init__(self, path: Path, step: int, tracker: Any = None) -> None:
        self._tracker = tracker
        kept = []
        if step and path.is_file():
            lines = path.read_text(encoding="utf-8", errors="replace").split("\n")
            kept = [line for line in lines if line and _step_of(line) <= step]
        write_text(path, "".join(line + "\n" for line in kept))
        self._file: IO[str] = path.open("a", encoding="utf-8")

    def write(self, step: int, values: dict[str, Any]) -> None:
        """Append a line, and send its numbers to the trackers."""
        self._file.write(json.dumps({"step": step, **values}) + "\n")
        self._file.flush()
        if self._tracker is not None:
            numbers = {k: v for k, v in values.items() if isinstance(v, int | float)}
            self._tracker.log(numbers, step=step)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def _step_of(line: str) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError, RecursionError, OverflowError):
        return float("inf")  # the last line of a killed process is incomplete


def check_trackers(names: list[str]) -> None:
    """Check that trackers are known and installed.

    Raises:
        OpencseError: One is not.
    """
    import importlib.util

    for name in names:
        if name not in TRACKERS:
            raise OpencseError(f"--track {name}: unknown tracker", f"Allowed: {', '.join(TRACKERS)}.")
        if importlib.util.find_spec(name) is None:
            raise OpencseError(f"--track {name}: the package is not installed", f"pip install {name}")
