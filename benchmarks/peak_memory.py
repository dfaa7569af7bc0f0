"""Peak memory of processes by the kernel's numbers, for the benchmarks."""

from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path


def memory(process: int | str, key: str) -> float:
    """Return a size of a process in MiB, by its name in `/proc/PROCESS/status`; 0 if it has ended.

    Args:
        process: Number of the process, or `self`.
        key: `RssAnon` for what it allocated, without the pages of mapped files, which the system
            may drop; `VmHWM` for the peak of all its pages.
    """
    try:
        lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    except OSError:
        return 0.0
    for line in lines:
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) / 1024
    return 0.0


class PeakMemory:
    """Watches the memory of this process, or of those that it starts, in MiB.

    Args:
        key: Which size, as in `memory`.
        children: Watch the processes that this one starts, not this one.
        seconds: Time between two looks.
    """

    def __init__(
        self, key: str = "RssAnon", *, children: bool = False, seconds: float = 0.01
    ) -> None:
        self._key = key
        self._children = children
        self._seconds = seconds
        self._peaks: dict[int | str, float] = {}
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> PeakMemory:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._thread.join()

    @property
    def peak(self) -> float:
        """The sum of the peaks of all processes."""
        return sum(self._peaks.values())

    @property
    def largest(self) -> float:
        """The largest peak of a process."""
        return max(self._peaks.values(), default=0.0)

    def _watch(self) -> None:
        while True:
            watched: list[int | str] = ["self"]
            if self._children:
                watched = [process.pid or 0 for process in multiprocessing.active_children()]
            for process in watched:
                seen = self._peaks.get(process, 0.0)
                self._peaks[process] = max(seen, memory(process, self._key))
            if self._done.wait(self._seconds):
                return
