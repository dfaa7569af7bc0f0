"""Engines for batch work: processes of this machine, or Ray. Both write exactly the same bytes.

| engine | class | for |
|---|---|---|
| `local` | `Local` | one machine |
| `ray` | `Ray` | a cluster whose machines see the same files (extra `ray`) |

On Ray, a job is a number (a file of the views, a shard of the vectors); it reads and writes files
that all machines share. If a worker dies, another one repeats its job. Each file appears complete
or not at all, so nothing is lost or duplicated. If the driver dies, a new one finds the finished
files.
"""

from __future__ import annotations

import importlib
import logging
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

from opencse.foundation.errors import OpencseError, imported


class WorkerTask(Protocol):
    """Work on one job. A task is pickled before it is opened, so it holds paths, not models.

    A task whose attribute `uses_gpu` is true runs in one process for each GPU, if there are any.
    """

    def open(self) -> Any:
        """Load models and files, once in each process."""
        ...

    def __call__(self, job: Any, /) -> Any:
        """Do one job on one thread; the result must not depend on other jobs of the process."""
        ...


@dataclass(frozen=True, kw_only=True)
class Local:
    """Processes of this machine.

    Attributes:
        processes: Number of processes; None for one per core that this process may use. With one,
            the work is done in this process. Work for GPUs gets at most one process per GPU.
    """

    # Whether workers may be on other machines; if so, jobs are numbers.
    remote: ClassVar[bool] = False

    processes: int | None = None

    @property
    def workers(self) -> int:
        """Number of jobs that run at the same time."""
        return max(1, self.processes or usable_cores())

    def map(self, task: WorkerTask, jobs: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield each job with its result, in order; only a few jobs run ahead.

        Raises:
            OpencseError: A worker process was killed, or could not start.
        """
        gpus = visible_gpus() if getattr(task, "uses_gpu", False) else []
        workers = min(self.workers, len(gpus)) if gpus else self.workers
        if workers == 1:
            task.open()
            with one_thread():
                for job in jobs:
                    yield job, task(job)
            return
        # Forking is unsafe once a library has started threads.
        context = multiprocessing.get_context("spawn")
        free = context.SimpleQueue()
        for gpu in gpus[:workers]:
            free.put(gpu)
        pool = ProcessPoolExecutor(
            workers, mp_context=context, initializer=_start, initargs=(task, free if gpus else None)
        )
        try:
            waiting: deque[tuple[Any, Future[Any]]] = deque()
            for job in jobs:
                # A submission may start a worker.
                with _without_ctrl_c():
                    future = pool.submit(_run, job)
                waiting.append((job, future))
                if len(waiting) > 2 * workers:
                    job, result = waiting.popleft()
                    yield job, result.result()
            for job, result in waiting:
                yield job, result.result()
        except BrokenProcessPool:
            raise OpencseError(
                "a worker process ended before its work was done",
                "If memory ran out, use fewer workers. If this is your own script, put its code under "
                "`if __name__ == '__main__':`, as each worker imports the script.",
            ) from None
        finally:
            pool.shutdown(cancel_futures=True)


def usable_cores() -> int:
    """Return the number of cores that this process may use, which can be fewer than the machine has."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def visible_gpus() -> list[str]:
    """Return the identifiers of the NVIDIA GPUs that this process may use, as for `CUDA_VISIBLE_DEVICES`."""
    given = os.environ.get("CUDA_VISIBLE_DEVICES")
    if given is not None:
        return [name.strip() for name in given.split(",") if name.strip()]
    torch = importlib.import_module("torch")
    return [str(number) for number in range(torch.cuda.device_count())]


@contextmanager
def _without_ctrl_c() -> Iterator[None]:
    """Put Ctrl-C off until the end of the block, and in processes that are started in it until they allow it.

    A worker that is interrupted while it imports its modules would print a traceback.
    """
    # Windows has no signal masks.
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


# The task of this worker process.
_TASK: WorkerTask | None = None


def _start(task: WorkerTask, free: Any = None) -> None:
    global _TASK
    if free is not None:
        # Before PyTorch looks for GPUs: each process sees one of them, as its first.
        os.environ["CUDA_VISIBLE_DEVICES"] = free.get()
    # The first job opens the task, because an error in an initializer does not reach the caller.
    _TASK = task
    # On Ctrl-C only the caller reports; the workers just end, those that have just started too.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGINT])
    threading.Thread(target=_end_with_caller, daemon=True).start()


def _end_with_caller() -> None:
    """End this worker when its caller is gone: a killed caller cannot end its workers itself."""
    caller = multiprocessing.parent_process()
    assert caller is not None
    wait([caller.sentinel])
    os._exit(1)


def _run(job: Any) -> Any:
    assert _TASK is not None
    # Within a job, Ctrl-C raises an exception, so that no temporary file is left.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        _TASK.open()
        with one_thread():
            return _TASK(job)
    finally:
        signal.signal(signal.SIGINT, signal.SIG_DFL)


@contextmanager
def one_thread() -> Iterator[None]:
    """Compute on one thread, so that sums are added in the same order on any machine."""
    import numpy  # noqa: F401 - only libraries that are loaded can be limited
    from threadpoolctl import threadpool_limits

    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch else 1
    try:
        if torch:
            torch.set_num_threads(1)
        with threadpool_limits(1):
            yield
    finally:
        if torch:
            torch.set_num_threads(before)


@dataclass(frozen=True, kw_only=True)
class Ray:
    """A Ray cluster.

    Attributes:
        address: Address of a running cluster ("auto", "10.0.0.1:6379", "ray://…"); "" starts Ray on
            this machine.
        processes: Number of workers, each on one core; None for one per core of the cluster. Work
            for GPUs gets a GPU for each worker, if the cluster has any.
    """

    remote: ClassVar[bool] = True

    address: str = ""
    processes: int | None = None

    @property
    def workers(self) -> int:
        """Number of jobs that run at the same time."""
        if self.processes:
            return self.processes
        return max(1, int(self._started().cluster_resources().get("CPU", 1)))

    def map(self, task: WorkerTask, jobs: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield each job with its result, in order, while later jobs run."""
        imported("ray", "ray")
        import ray.data

        # After the import, which sets Ray's log levels.
        self._started()
        numbers = [int(job) for job in jobs]
        if not numbers:
            return
        gpus = 0
        if getattr(task, "uses_gpu", False):
            gpus = int(self._started().cluster_resources().get("GPU", 0))
        workers = min(self.workers, gpus) if gpus else self.workers
        context = ray.data.DataContext.get_current()
        # The caller shows its own progress.
        context.enable_progress_bars = False
        context.execution_options.preserve_order = True
        dataset = ray.data.from_items(
            [{"job": number} for number in numbers], override_num_blocks=len(numbers)
        )
        done = dataset.map_batches(
            _Worker,
            fn_constructor_args=(task,),
            batch_size=1,
            num_cpus=1,
            num_gpus=1 if gpus else 0,
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=min(workers, len(numbers))),
        )
        for row in done.iter_rows():
            yield int(row["job"]), int(row["result"])

    def _started(self) -> Any:
        """Connect to the cluster, or start one, and return the module `ray`.

        Raises:
            OpencseError: Ray is not installed, or there is no cluster at the address.
        """
        ray = imported("ray", "ray")
        logging.getLogger("ray.data").setLevel(logging.WARNING)
        # It warns that its progress bars are off, which the caller wants.
        logging.getLogger("ray.data._internal.progress").setLevel(logging.ERROR)
        if not ray.is_initialized():
            try:
                ray.init(
                    address=self.address or "local",
                    num_cpus=None if self.address else self.processes,
                    include_dashboard=None if self.address else False,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                )
            except (ConnectionError, RuntimeError, ValueError) as error:
                raise OpencseError(
                    f"engine ray: no cluster at {self.address!r} ({str(error).splitlines()[0]})",
                    "Start one with `ray start --head`, or remove the address. Each machine needs "
                    "the token of the cluster (`~/.ray/auth_token`), if Ray asks for one.",
                ) from error
        return ray


class _Worker:
    """An actor that opens the task once, then does jobs."""

    def __init__(self, task: WorkerTask) -> None:
        self._task = task
        task.open()

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        import numpy as np

        with one_thread():
            results = [self._task(int(job)) for job in batch["job"]]
        return {"job": batch["job"], "result": np.asarray(results, dtype=np.int64)}


Engine = Local | Ray


def launched_processes() -> int:
    """Return how many processes a launcher such as `torchrun` started; 1 without a launcher.

    Raises:
        OpencseError: The variables that launchers set are not complete, or make no sense.
    """
    given = {name: os.environ.get(name) or "" for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK")}
    if not any(given.values()):
        return 1
    numbers = all(value.isdecimal() for value in given.values())
    if not numbers or int(given["RANK"]) >= int(given["WORLD_SIZE"]):
        parts = [f"{name}={value}" if value else f"no {name}" for name, value in given.items()]
        shown = ", ".join(parts)
        raise OpencseError(
            f"the variables of a launcher make no sense: {shown}",
            "Unset them (`unset WORLD_SIZE RANK LOCAL_RANK`); launchers such as `torchrun` set all of them.",
        )
    _check_meeting_place(int(given["WORLD_SIZE"]))
    return int(given["WORLD_SIZE"])


def _check_meeting_place(processes: int) -> None:
    """Check the variables that name the place where processes meet: without them, each would wait for ever or fail.

    Raises:
        OpencseError: There are several processes, and a variable is missing or makes no sense.
    """
    if processes == 1:
        return
    address, port = (os.environ.get(name, "") for name in ("MASTER_ADDR", "MASTER_PORT"))
    is_port = port.isascii() and port.isdecimal() and 0 < int(port) < 2**16
    if not address or not is_port:
        raise OpencseError(
            f"WORLD_SIZE={processes}, but no launcher set where the processes meet "
            f"(MASTER_ADDR={address!r:.80}, MASTER_PORT={port!r:.80})",
            "Unset them (`unset WORLD_SIZE RANK LOCAL_RANK`), or start with a launcher such as `torchrun`.",
        )
