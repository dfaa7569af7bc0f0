"""`metrics.jsonl`, always; other trackers by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import IO, Any

from opencse.errors import OpencseError
from opencse.io.files import write_text

TRACKERS = ("tensorboard", "wandb", "trackio")


class MetricsLog:
    """One JSON object per line: `{"step": 25, "loss": …, "lr": …}` or `{"step": 125, "dev": …}`.

    Args:
        path: The file; on resumption its lines after `step` are dropped, as those steps are done again.
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
        """Append a line, and pass the numbers on to the trackers."""
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
        return float("inf")  # a line that a kill cut short


def check_trackers(names: list[str]) -> None:
    """Refuse unknown trackers and those that are not installed, before any training."""
    import importlib.util

    for name in names:
        if name not in TRACKERS:
            raise OpencseError(f"--track {name}: unknown tracker", f"Allowed: {', '.join(TRACKERS)}.")
        if importlib.util.find_spec(name) is None:
            raise OpencseError(f"--track {name}: the package is not installed", f"pip install {name}")
