"""How far a long phase is: a bar on a terminal or in a notebook, a line every thirty seconds anywhere else.

Everything that opencse says while it works goes through this module and to standard error, so that one switch
(`set_verbosity`) silences it.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from enum import IntEnum
from types import TracebackType
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from rich.progress import Progress

Notify = Callable[[str], None]
"""Receives short notes for the user."""

EVERY = 30.0
"""Seconds between two lines of one phase where there is no terminal."""


class Verbosity(IntEnum):
    """How much is said while opencse works; results and errors are always printed."""

    QUIET = 0
    NORMAL = 1
    VERBOSE = 2


_verbosity = Verbosity.NORMAL


def set_verbosity(verbosity: Verbosity) -> None:
    """Set how much this process says from now on."""
    global _verbosity
    _verbosity = verbosity


@contextmanager
def progress_shown(show: bool) -> Iterator[None]:
    """Say nothing inside a `with` block unless `show` is true."""
    before = _verbosity
    set_verbosity(before if show else Verbosity.QUIET)
    try:
        yield
    finally:
        set_verbosity(before)


def note(text: str, *, verbose: bool = False) -> None:
    """Print a remark to standard error.

    Args:
        text: One line.
        verbose: Print it only if the user asked for more (`--verbose`).
    """
    if _verbosity >= (Verbosity.VERBOSE if verbose else Verbosity.NORMAL):
        _write(f"opencse: {text}")


class Phase:
    """The progress of one phase, as a context manager.

    Args:
        label: The phase, such as `training`.
        total: Units of work in all; None if unknown.
        unit: Name of a unit in the plural, such as `sentences`.
        initial: Units that were done before.
        show: False prints nothing.
        every: Seconds between two lines where there is no terminal.

    Example:
        >>> with Phase("mining", total=3, unit="sentences", show=False) as phase:
        ...     for _ in range(3):
        ...         phase.update()
        >>> phase.done
        3
    """

    def __init__(
        self,
        label: str,
        *,
        total: int | None = None,
        unit: str = "",
        initial: int = 0,
        show: bool = True,
        every: float = EVERY,
    ) -> None:
        self.label, self.total, self.unit, self.initial = label, total, unit, initial
        self.done = initial
        self._every = every
        self._details: dict[str, str] = {}
        self._started = time.monotonic()
        self._bar: _Bar | None = None
        self._lines: threading.Thread | None = None
        self._count: Callable[[], int] | None = None
        self._follower: threading.Thread | None = None
        self._closed = threading.Event()
        if show and _verbosity > Verbosity.QUIET:
            self._show()

    def __enter__(self) -> Phase:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(finished=kind is None)

    def update(self, count: int = 1) -> None:
        """Count units that are done."""
        self.done += count
        if self._bar is not None:
            self._bar.update()

    def follow(self, count: Callable[[], int], *, every: float = 1.0) -> None:
        """Take the number of units that are done from a function from now on, in place of `update`.

        Args:
            count: Returns the units that are done; called in a thread of its own, and once more at the end.
            every: Seconds between two calls.
        """
        self._count = count
        self._follower = threading.Thread(target=self._take_counts, args=(every,), daemon=True)
        self._follower.start()

    def _take_counts(self, every: float) -> None:
        while not self._closed.wait(every):
            self._take_count()

    def _take_count(self) -> None:
        if self._count is not None:
            self.update(max(0, self._count() - self.done))

    def resize(self, total: int) -> None:
        """Change the number of units in all."""
        self.total = total
        if self._bar is not None:
            self._bar.update()

    def details(self, values: dict[str, str]) -> None:
        """Set what is shown beside the rate, such as the current loss."""
        self._details = values
        if self._bar is not None:
            self._bar.update()

    def close(self, *, finished: bool = True) -> None:
        """End the phase. One that took long enough to be reported on gets a last line."""
        self._closed.set()
        if self._follower is not None:
            self._follower.join()
            self._follower = None
            self._take_count()
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        if self._lines is not None:
            self._lines.join()
            self._lines = None
            if finished and time.monotonic() - self._started >= self._every:
                seconds = time.monotonic() - self._started
                _write(f"opencse: {self.label}: {self._amount()} in {duration(seconds)}")

    def line(self) -> str:
        """Say how far the phase is: amount, share, rate, time left."""
        new, seconds = self.done - self.initial, time.monotonic() - self._started
        parts = [self._amount(of_total=True)]
        if self.total:
            parts[0] += f" ({100 * self.done / self.total:.0f} %)"
        rate = new / seconds if seconds > 0 else 0.0
        if rate:
            parts.append(f"{_number(rate)} {self.unit}/s".replace(" /s", "/s"))
            if self.total:
                parts.append(f"{duration((self.total - self.done) / rate)} left")
        parts += [f"{name} {value}" for name, value in self._details.items()]
        return f"{self.label}: {', '.join(parts)}"

    def _amount(self, *, of_total: bool = False) -> str:
        total = f" of {self.total:,}" if of_total and self.total is not None else ""
        unit = self.unit.removesuffix("s") if self.done == 1 and not total else self.unit
        return f"{self.done:,}{total} {unit}".rstrip()

    def _show(self) -> None:
        if sys.stderr.isatty() or ("ipykernel" in sys.modules and importlib.util.find_spec("ipywidgets")):
            self._bar = _Bar(self)
        else:
            self._lines = threading.Thread(target=self._write_lines, daemon=True)
            self._lines.start()

    def _write_lines(self) -> None:
        while not self._closed.wait(self._every):
            _write(f"opencse: {self.line()}")


class _Bar:
    """The bar of a phase on a terminal or in a notebook; bars of phases within phases stand below one another."""

    _shown: ClassVar[Progress | None] = None

    def __init__(self, phase: Phase) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn

        if _Bar._shown is None:
            line = TextColumn("{task.fields[line]}", markup=False)
            _Bar._shown = Progress(BarColumn(20), line, console=Console(file=sys.stderr), transient=True)
            _Bar._shown.start()
        self._phase, self._progress = phase, _Bar._shown
        self._task = self._progress.add_task("", total=phase.total, completed=phase.done, line=phase.line())

    def update(self) -> None:
        phase = self._phase
        self._progress.update(self._task, total=phase.total, completed=phase.done, line=phase.line())

    def close(self) -> None:
        self._progress.remove_task(self._task)
        if not self._progress.tasks:
            self._progress.stop()
            _Bar._shown = None


def duration(seconds: float) -> str:
    """Return a time span in its two largest units: `45 s`, `12 min 5 s`, `3 h 20 min`."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def about(seconds: float) -> str:
    """Return a time span as exactly as an estimate is: in minutes, or below that in tens of seconds."""
    return duration(60 * round(seconds / 60)) if seconds >= 90 else duration(10 * max(1, round(seconds / 10)))


def _number(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"


def _write(line: str) -> None:
    # One call, so that lines of several threads do not mix.
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


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
def collect() -> Iterator[Timings]:
    """Collect the parts of everything that runs inside a `with` block; `other` is what is in no part."""
    timings = Timings()
    token = _CURRENT.set(timings)
    try:
        with timings.part("other"):
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
