"""Processes of this machine, one per core, each with one thread."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import Any, ClassVar, Protocol

from opencse.foundation.errors import OpencseError


class WorkerTask(Protocol):
    """The work on one job. A task is pickled before it is opened, so it holds paths and options, not models."""

    def open(self) -> Any:
        """Load models and files, once in each process."""
        ...

    def __call__(self, job: Any, /) -> Any:
        """Do one job on one thread; the result does not depend on other jobs of the process."""
        ...


class Engine(Protocol):
    """An engine, which runs tasks.

    Attributes:
        workers: Number of jobs that run at the same time.
        remote: Whether workers may be on other machines; then jobs are numbers, and data is passed in files that all
            machines see.
    """

    remote: ClassVar[bool]

    @property
    def workers(self) -> int: ...  # noqa: D102

    def map(self, task: WorkerTask, jobs: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield each job with its result, in the order of the jobs, while later ones run."""
        ...


DIED = (
    "If memory ran out, use fewer workers. If this is your own script, put its code under "
    "`if __name__ == '__main__':`, as each worker imports the script."
)


@dataclass(frozen=True, kw_only=True)
class Local:
    """Processes of this machine.

    Attributes:
        processes: Number of processes; None for one per core. With one, the work is done in this process.
    """

    remote: ClassVar[bool] = False

    processes: int | None = None

    @property
    def workers(self) -> int:
        """Number of jobs that run at the same time."""
        return max(1, self.processes or os.cpu_count() or 1)

    def map(self, task: WorkerTask, jobs: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield each job with its result, in order; only a few jobs run ahead.

        Raises:
            OpencseError: A worker process was killed, or could not start.
        """
        if self.workers == 1:
            task.open()
            with one_thread():
                for job in jobs:
                    yield job, task(job)
            return
        context = multiprocessing.get_context("spawn")  # fork is unsafe once a library has started threads
        pool = ProcessPoolExecutor(self.workers, mp_context=context, initializer=_start, initargs=(task,))
        try:
            waiting: deque[tuple[Any, Future[Any]]] = deque()
            for job in jobs:
                waiting.append((job, pool.submit(_run, job)))
                if len(waiting) > 2 * self.workers:
                    job, result = waiting.popleft()
                    yield job, result.result()
            for job, result in waiting:
                yield job, result.result()
        except BrokenProcessPool:
            raise OpencseError("a worker process ended before its work was done", DIED) from None
        finally:
            pool.shutdown(cancel_futures=True)


_TASK: WorkerTask | None = None  # of a worker process


def _start(task: WorkerTask) -> None:
    global _TASK
    _TASK = task  # it is opened with its first job: only then does an error reach the caller
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # on Ctrl-C only the caller reports, the workers just end
    threading.Thread(target=_end_with_caller, daemon=True).start()
    limit_threads()


def _end_with_caller() -> None:
    """End this worker when its caller is gone: one that was killed cannot end its workers itself."""
    caller = multiprocessing.parent_process()
    assert caller is not None
    wait([caller.sentinel])
    os._exit(1)


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
    """Compute on one thread, as the worker processes do, so that sums have the same order and the same bytes."""
    import numpy  # noqa: F401
    from threadpoolctl import threadpool_limits

    before = _torch_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        _torch_threads(before)


def _torch_threads(count: int) -> int:
    """Set torch's number of threads, and return the previous one; no effect if torch is not loaded."""
    torch = sys.modules.get("torch")
    if torch is None:
        return count
    before: int = torch.get_num_threads()
    torch.set_num_threads(count)
    return before
