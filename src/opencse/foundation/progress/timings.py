"""How long the parts of a command take."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar

from opencse.foundation.progress.phase import duration, note


class Timings:
    """Seconds by part. A part inside another one counts for itself alone, so that the parts add up to the whole."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._open: list[str] = []
        self._whole = False
        self._since = time.perf_counter()

    @contextmanager
    def part(self, name: str, *, whole: bool = False) -> Iterator[None]:
        """Count the time of a `with` block.

        Args:
            name: Of the part.
            whole: Parts inside this one count for it.
        """
        if self._whole:
            yield
            return
        self._count()
        self._whole = whole
        self._open.append(name)
        before = self.seconds.setdefault(name, 0.0)
        try:
            yield
        finally:
            self._count()
            self._whole = False
            self._open.pop()
            note(f"{name}: {duration(self.seconds[name] - before)}", verbose=True)

    def divide(self, name: str, shares: Mapping[str, float]) -> None:
        """Replace a part by smaller ones, in proportion to `shares`: work of other processes, where they measured."""
        whole, total = self.seconds.get(name, 0.0), sum(shares.values())
        if not whole or not total:
            return
        del self.seconds[name]
        for part, share in shares.items():
            self.seconds[part] = self.seconds.get(part, 0.0) + whole * share / total

    def rounded(self) -> dict[str, float]:
        """Return the seconds by part to a tenth, the longest first; parts that took none are left out."""
        ordered = sorted(self.seconds.items(), key=lambda item: -item[1])
        return {name: round(seconds, 1) for name, seconds in ordered if seconds >= 0.05}

    def line(self) -> str:
        """Return all parts of at least a second, the longest first."""
        parts = [f"{name} {duration(seconds)}" for name, seconds in self.rounded().items() if seconds >= 1]
        return f"{duration(sum(self.seconds.values()))} in all" + (f": {', '.join(parts)}" if parts else "")

    def _count(self) -> None:
        now = time.perf_counter()
        if self._open:
            self.seconds[self._open[-1]] += now - self._since
        self._since = now


_CURRENT: ContextVar[Timings | None] = ContextVar("timings", default=None)


@contextmanager
def collect(rest: str = "other") -> Iterator[Timings]:
    """Collect the parts of everything that runs inside a `with` block.

    Args:
        rest: Name of what is in no part.
    """
    timings = Timings()
    token = _CURRENT.set(timings)
    try:
        with timings.part(rest):
            yield timings
    finally:
        _CURRENT.reset(token)


@contextmanager
def timed(name: str, *, whole: bool = False) -> Iterator[None]:
    """Measure a part of the timings that are being collected, if any are (`Timings.part`); also a decorator."""
    timings = _CURRENT.get()
    if timings is None:
        yield
        return
    with timings.part(name, whole=whole):
        yield


def divide(name: str, shares: Mapping[str, float]) -> None:
    """Divide a part of the timings that are being collected, if any are (`Timings.divide`)."""
    if (timings := _CURRENT.get()) is not None:
        timings.divide(name, shares)
