"""What an engine is: it runs one task on many jobs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Protocol


class Task(Protocol):
    """Work on one job. It is pickled before it is opened, so it holds paths and parameters, not models."""

    def open(self) -> Any:
        """Load what the work needs, once in each process."""
        ...

    def __call__(self, job: Any, /) -> Any:
        """Do one job; on one thread, and the same whatever other jobs this process had."""
        ...


class Engine(Protocol):
    """Runs tasks.

    Attributes:
        workers: How many jobs run at the same time.
        remote: Whether workers may be on other machines: then jobs are numbers, and data goes through files that all
            machines see.
    """

    remote: ClassVar[bool]

    @property
    def workers(self) -> int: ...  # noqa: D102

    def map(self, task: Task, jobs: Iterable[Any]) -> Iterator[tuple[Any, Any]]:
        """Yield each job with its result, in the order of the jobs, while later ones run."""
        ...
