"""Tasks for the tests of workers. A worker imports this module only, which takes no time: no torch, no models."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from opencse.foundation.errors import OpencseError


class Double:
    """Twice the job; 0 is refused, and -1 kills the process."""

    def open(self) -> None: ...

    def __call__(self, job: int) -> int:
        if job == 0:
            raise OpencseError("0 cannot be doubled")
        if job < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return 2 * job


class SeesGpu:
    """Returns the GPU that its process sees."""

    uses_gpu = True

    def open(self) -> None: ...

    def __call__(self, job: int) -> str | None:
        time.sleep(0.2)  # so that every process gets a job
        return os.environ.get("CUDA_VISIBLE_DEVICES")


class DieOnce:
    """Writes a number to a file for each job; at one of them the process kills itself, the first time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def open(self) -> None:
        pass

    def __call__(self, job: int) -> int:
        if job == 3 and not (self.folder / "died").exists():
            (self.folder / "died").touch()
            os.kill(os.getpid(), signal.SIGKILL)
        (self.folder / f"done-{job}").touch()
        return 10 * job
