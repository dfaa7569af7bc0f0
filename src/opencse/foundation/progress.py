"""How far a long phase is: a progress bar, or without a terminal a line every thirty seconds.

Everything that opencse reports while it works goes through this module to standard error, so that
one switch (`set_quiet`) silences it.
"""

from __future__ import annotations

import importlib.util
import logging
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING

from opencse.foundation.terminal import print_line, printable

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

Notify = Callable[[str], None]
"""Receives short notes for the user."""

EVERY = 30.0
"""Seconds between two lines of one phase if there is no terminal."""


_quiet = False


def set_quiet(quiet: bool) -> None:
    """Set whether this process prints only results and errors from now on."""
    global _quiet
    _quiet = quiet


@contextmanager
def progress_shown(show: bool) -> Iterator[None]:
    """Say nothing inside a `with` block unless `show` is true."""
    before = _quiet
    set_quiet(before or not show)
    try:
        yield
    finally:
        set_quiet(before)


class _Lines(logging.Handler):
    """Prints each record as one line to standard error, next to the progress bars."""

    def emit(self, record: logging.LogRecord) -> None:
        if _quiet:
            return
        mark = "warning: " if record.levelno >= logging.WARNING else ""
        print_line(f"opencse: {mark}{record.getMessage()}")


LOG = logging.getLogger("opencse")
"""The logger of all remarks. Set its level to hear less or more, or replace its handler."""
# A root handler would print every remark twice.
LOG.propagate = False
# This module is imported late: what the user has set by then counts.
if LOG.level == logging.NOTSET:
    LOG.setLevel(logging.INFO)
if not LOG.handlers:
    LOG.addHandler(_Lines())

_WARNING = "warning: "


def note(text: str) -> None:
    """Log a one-line remark; one that begins with `warning: ` is logged as a warning."""
    if text.startswith(_WARNING):
        LOG.warning("%s", text.removeprefix(_WARNING))
    else:
        LOG.info("%s", text)


# For remarks on files and models that are read several times.
note_once = cache(note)


class Phase:
    """The progress of one phase, as a context manager.

    Args:
        label: The phase, such as `training`.
        total: Units of work; None if unknown.
        unit: Name of a unit in the plural, such as `sentences`.
        initial: Units that an earlier run has done.
        show: Whether anything is printed.
        count: Returns the units that are done, instead of `update`; called from another thread.

    Attributes:
        total: As given; it may be changed.
        details: What is shown next to the rate by name, such as the current loss.

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
        count: Callable[[], int] | None = None,
    ) -> None:
        self.label = label
        self.total = total
        self.unit = unit
        self.initial = initial
        self.details: dict[str, str] = {}
        self._updated = initial
        self._count = count
        self._started = time.monotonic()
        self._closed = threading.Event()
        self._bar: TaskID | None = None
        self._lines = threading.Thread(target=self._write_lines, daemon=True)
        if not show or _quiet:
            return
        if _can_show_bars():
            self._bar = _open_bars().add_task("", phase=self)
        else:
            self._lines.start()

    def __enter__(self) -> Phase:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the phase. If it took long enough for a progress line, write a last one."""
        global _bars
        self._closed.set()
        if self._bar is not None:
            assert _bars is not None
            _bars.remove_task(self._bar)
            if not _bars.tasks:
                _bars.stop()
                _bars = None
        elif self._lines.is_alive():
            self._lines.join()
            seconds = time.monotonic() - self._started
            if kind is None and seconds >= EVERY:
                print_line(f"opencse: {self.label}: {self._amount()} in {duration(seconds)}")

    @property
    def done(self) -> int:
        """Units that are done."""
        if self._count is not None:
            return self._count()
        return self._updated

    def update(self, count: int = 1) -> None:
        """Count units that are done."""
        self._updated += count

    def line(self) -> str:
        """Describe how far the phase is: amount, share, rate, time left."""
        done = self.done
        seconds = time.monotonic() - self._started
        rate = (done - self.initial) / seconds if seconds > 0 else 0.0
        amount = self._amount(of_total=True)
        if self.total:
            amount += f" ({100 * done / self.total:.0f} %)"
        parts = [amount]
        if rate:
            number = f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"
            # A phase without a unit has no space before the slash.
            parts.append(f"{number} {self.unit}/s".replace(" /s", "/s"))
        if rate and self.total:
            parts.append(f"{duration((self.total - done) / rate)} left")
        for name, value in self.details.items():
            parts.append(f"{name} {value}")
        return f"{self.label}: {', '.join(parts)}"

    def _amount(self, *, of_total: bool = False) -> str:
        total = ""
        if of_total and self.total is not None:
            total = f" of {self.total:,}"
        unit = self.unit
        if self.done == 1 and not total:
            unit = unit.removesuffix("s")
        return f"{self.done:,}{total} {unit}".rstrip()

    def _write_lines(self) -> None:
        while not self._closed.wait(EVERY):
            print_line(f"opencse: {self.line()}")


# The bars of all open phases, stacked, on a terminal or in a notebook.
_bars: Progress | None = None


def _can_show_bars() -> bool:
    """Return whether standard error is a terminal, or a notebook that can redraw a bar."""
    if sys.stderr.isatty():
        return True
    return "ipykernel" in sys.modules and importlib.util.find_spec("ipywidgets") is not None


def _open_bars() -> Progress:
    global _bars
    if _bars is None:
        from rich.console import Console
        from rich.progress import Progress, ProgressColumn, Task
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        class _StatusColumn(ProgressColumn):
            def render(self, task: Task) -> Table:
                phase: Phase = task.fields["phase"]
                bar = ProgressBar(phase.total, phase.done, width=20, animation_time=task.get_time())
                row = Table.grid(padding=(0, 1))
                row.add_row(bar, Text(printable(phase.line(), one_line=True)))
                return row

        _bars = Progress(_StatusColumn(), console=Console(file=sys.stderr), transient=True)
        _bars.start()
    return _bars


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
    """Return an estimated time span: in minutes, or below 90 seconds in tens of seconds."""
    if seconds >= 90:
        return duration(60 * round(seconds / 60))
    return duration(10 * max(1, round(seconds / 10)))


class Timings:
    """Seconds by part.

    Time in a nested part counts only for the nested part, so that the parts add up to the total.
    """

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._open: list[str] = []
        self._since = time.perf_counter()

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """Count the time of a `with` block."""
        self._count()
        self._open.append(name)
        self.seconds.setdefault(name, 0.0)
        try:
            yield
        finally:
            self._count()
            self._open.pop()

    def rounded(self) -> dict[str, float]:
        """Return the seconds by part to a tenth, longest first, without parts that took no time."""
        ordered = sorted(self.seconds.items(), key=lambda item: -item[1])
        return {name: round(seconds, 1) for name, seconds in ordered if seconds >= 0.05}

    def line(self) -> str:
        """Return the total and all parts of at least a second, longest first."""
        parts = []
        for name, seconds in self.rounded().items():
            if seconds >= 1:
                parts.append(f"{name} {duration(seconds)}")
        total = f"{duration(sum(self.seconds.values()))} in all"
        if not parts:
            return total
        return f"{total}: {', '.join(parts)}"

    def _count(self) -> None:
        now = time.perf_counter()
        if self._open:
            self.seconds[self._open[-1]] += now - self._since
        self._since = now


# The default takes the parts that nobody collects.
_CURRENT: ContextVar[Timings] = ContextVar("timings", default=Timings())  # noqa: B039


@contextmanager
def collect() -> Iterator[Timings]:
    """Collect the parts of everything that runs inside a `with` block; the rest is `other`."""
    timings = Timings()
    token = _CURRENT.set(timings)
    try:
        with timings.part("other"):
            yield timings
    finally:
        _CURRENT.reset(token)


def timed(name: str) -> AbstractContextManager[None]:
    """Count a `with` block as a part of the timings that are being collected (`Timings.part`)."""
    return _CURRENT.get().part(name)
