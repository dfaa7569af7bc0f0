"""The machines of a Ray cluster, through Ray Data.

A job is a number (a file of the views, a shard of the vectors); it reads and writes files that all machines see. A
worker that dies is replaced and its job is repeated; a file is written whole or not at all, so nothing is lost or
duplicated. If the driver dies, a new one finds the finished files.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

from opencse.foundation.errors import OpencseError
from opencse.foundation.workers.local import WorkerTask


@dataclass(frozen=True, kw_only=True)
class Ray:
    """A Ray cluster.

    Attributes:
        address: Address of a running cluster ("auto", "10.0.0.1:6379", "ray://…"); "" starts Ray on this machine.
        processes: Number of workers, each on one core; None for one per core of the cluster.
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
        self._started()
        import ray.data

        numbers = [int(job) for job in jobs]
        if not numbers:
            return
        context = ray.data.DataContext.get_current()
        context.enable_progress_bars = False  # the caller shows its own
        context.execution_options.preserve_order = True
        dataset = ray.data.from_items([{"job": number} for number in numbers], override_num_blocks=len(numbers))
        done = dataset.map_batches(
            _Worker,
            fn_constructor_args=(task,),
            batch_size=1,
            num_cpus=1,
            compute=ray.data.ActorPoolStrategy(min_size=1, max_size=min(self.workers, len(numbers))),
        )
        for row in done.iter_rows():
            yield int(row["job"]), int(row["result"])

    def _started(self) -> Any:
        """Connect to the cluster, or start one, and return the module `ray`.

        Raises:
            OpencseError: Ray is not installed, or there is no cluster at the address.
        """
        try:
            import ray
        except ImportError:
            raise OpencseError("engine ray: Ray is not installed", "pip install 'opencse[ray]'") from None
        logging.getLogger("ray.data").setLevel(logging.WARNING)
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
                    "Start one with `ray start --head`, or remove the address.",
                ) from error
        return ray


class _Worker:
    """An actor that opens the task once, then does jobs."""

    def __init__(self, task: WorkerTask) -> None:
        from opencse.foundation.workers.local import limit_threads

        limit_threads()
        self._task = task
        task.open()

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        import numpy as np

        from opencse.foundation.workers.local import one_thread

        with one_thread():
            results = [self._task(int(job)) for job in batch["job"]]
        return {"job": batch["job"], "result": np.asarray(results, dtype=np.int64)}
