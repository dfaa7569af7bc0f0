"""The interface of engines, which run one task on many jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Protocol


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
