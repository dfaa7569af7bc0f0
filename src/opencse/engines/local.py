"""This machine: one process per core, each on one thread."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from opencse.engines.base import Task


@dataclass(frozen=True, kw_only=True)
class Local:
    """Processes of this machine.

    Attributes:
        processes: How many; None for one per core. With one, the work is done in this process.
    """

    remote: ClassVar[bool] = False

    processes: int | None = None

    @property
    def workers(self) -> int:
        """How many jobs run at the same time."""
        return max(1, self.processes or os.cpu_count() or 1)

    def map(self, task: Task, jobs: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield each job with its result, in order, at most a few ahead of what is asked for."""
        if self.workers == 1:
            task.open()
            with one_thread():
                for job in jobs:
                    yield job, task(job)
            return
        context = multiprocessing.get_context("spawn")  # fork is unsafe once a library has started threads
        with context.Pool(self.workers, initializer=_start, initargs=(task,)) as pool:
            waiting: deque[tuple[Any, Any]] = deque()
            for job in jobs:
                waiting.append((job, pool.apply_async(_run, (job,))))
                if len(waiting) > 2 * self.workers:
                    job, result = waiting.popleft()
                    yield job, result.get()
            for job, result in waiting:
                yield job, result.get()


_TASK: Task | None = None  # of a worker process


def _start(task: Task) -> None:
    global _TASK
    _TASK = task  # it opens with its first job: an error here would start processes for ever
    limit_threads()


def _run(job: Any) -> Any:
    assert _TASK is not None
    _TASK.open()
    _torch_threads(1)
    return _TASK(job)


def limit_threads() -> None:
    """Keep this process to one thread of NumPy's linear algebra from now on."""
    import numpy  # noqa: F401 - only libraries that are loaded can be limited
    from threadpoolctl import threadpool_limits

    threadpool_limits(1)


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread for a while, as the worker processes do: the same order of sums, so the same bytes."""
    import numpy  # noqa: F401
    from threadpoolctl import threadpool_limits

    before = _torch_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        _torch_threads(before)


def _torch_threads(count: int) -> int:
    """Set the number of threads of one operation, and return what it was; nothing where torch is not loaded."""
    torch = sys.modules.get("torch")
    if torch is None:
        return count
    before: int = torch.get_num_threads()
    torch.set_num_threads(count)
    return before
