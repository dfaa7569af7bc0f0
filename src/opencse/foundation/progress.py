"""How far a long phase is: a bar on a terminal or in a notebook, a line every thirty seconds anywhere else.

Everything that opencse says while it works goes through this module and to standard error, so that
one switch (`set_quiet`) silences it.
"""

from __future__ import annotations

import importlib.util
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

Notify = Callable[[str], None]
"""Receives short notes for the user."""

EVERY = 30.0
"""Seconds between two lines of one phase where there is no terminal."""


_quiet = False


def set_quiet(quiet: bool) -> None:
    """Set whether this process says nothing from now on but results and errors."""
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


def note(text: str) -> None:
    """Print a remark of one line to standard error."""
    if not _quiet:
        _write(f"opencse: {text}")


note_once = cache(note)  # of files and models that are read several times


class Phase:
    """The progress of one phase, as a context manager.

    Args:
        label: The phase, such as `training`.
        total: Units of work in all; None if unknown.
        unit: Name of a unit in the plural, such as `sentences`.
        initial: Units that were done before.
        show: False prints nothing.
        count: Returns the units that are done, in place of `update`; called from another thread.

    Attributes:
        total: As given; it may be changed.
        details: What is shown beside the rate by name, such as the current loss.

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
        self.label, self.total, self.unit, self.initial = label, total, unit, initial
        self.details: dict[str, str] = {}
        self._updated, self._count = initial, count
        self._started = time.monotonic()
        self._closed = threading.Event()
        self._bar: TaskID | None = None
        self._lines = threading.Thread(target=self._write_lines, daemon=True)
        if not show or _quiet:
            return
        if sys.stderr.isatty() or (
            "ipykernel" in sys.modules and importlib.util.find_spec("ipywidgets")
        ):
            self._bar = _open_bars().add_task("", phase=self)
        else:
            self._lines.start()

    def __enter__(self) -> Phase:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """End the phase. One that took long enough to be reported on gets a last line."""
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
                _write(f"opencse: {self.label}: {self._amount()} in {duration(seconds)}")

    @property
    def done(self) -> int:
        """Units that are done."""
        return self._updated if self._count is None else self._count()

    def update(self, count: int = 1) -> None:
        """Count units that are done."""
        self._updated += count

    def line(self) -> str:
        """Say how far the phase is: amount, share, rate, time left."""
        done, seconds = self.done, time.monotonic() - self._started
        parts = [self._amount(of_total=True)]
        if self.total:
            parts[0] += f" ({100 * done / self.total:.0f} %)"
        if rate := (done - self.initial) / seconds if seconds > 0 else 0.0:
            number = f"{rate:,.0f}" if rate >= 10 else f"{rate:.2g}"
            parts.append(f"{number} {self.unit}/s".replace(" /s", "/s"))
            if self.total:
                parts.append(f"{duration((self.total - done) / rate)} left")
        parts += [f"{name} {value}" for name, value in self.details.items()]
        return f"{self.label}: {', '.join(parts)}"

    def _amount(self, *, of_total: bool = False) -> str:
        total = f" of {self.total:,}" if of_total and self.total is not None else ""
        unit = self.unit.removesuffix("s") if self.done == 1 and not total else self.unit
        return f"{self.done:,}{total} {unit}".rstrip()

    def _write_lines(self) -> None:
        while not self._closed.wait(EVERY):
            _write(f"opencse: {self.line()}")


_bars: Progress | None = None
"""The bars of all phases that are open, one below the other, on a terminal or in a notebook."""


def _open_bars() -> Progress:
    global _bars
    if _bars is None:
        from rich.console import Console
        from rich.progress import Progress, ProgressColumn, Task
        from rich.progress_bar import ProgressBar
        from rich.table import Table
        from rich.text import Text

        class Column(ProgressColumn):
            def render(self, task: Task) -> Table:
                phase: Phase = task.fields["phase"]
                bar = ProgressBar(phase.total, phase.done, width=20, animation_time=task.get_time())
                row = Table.grid(padding=(0, 1))
                row.add_row(bar, Text(phase.line()))
                return row

        _bars = Progress(Column(), console=Console(file=sys.stderr), transient=True)
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
    """Return a time span as exactly as an estimate is: in minutes, or below that in tens of seconds."""
    return (
        duration(60 * round(seconds / 60))
        if seconds >= 90
        else duration(10 * max(1, round(seconds / 10)))
    )


def _write(line: str) -> None:
    # One call, so that lines of several threads do not mix.
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


class Timings:
    """Seconds by part. A part inside another one counts for itself alone, so that the parts add up to the whole."""

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
        """Return the seconds by part to a tenth, the longest first; parts that took none are left out."""
        ordered = sorted(self.seconds.items(), key=lambda item: -item[1])
        return {name: round(seconds, 1) for name, seconds in ordered if seconds >= 0.05}

    def line(self) -> str:
        """Return all parts of at least a second, the longest first."""
        parts = [
            f"{name} {duration(seconds)}"
            for name, seconds in self.rounded().items()
            if seconds >= 1
        ]
        return f"{duration(sum(self.seconds.values()))} in all" + (
            f": {', '.join(parts)}" if parts else ""
        )

    def _count(self) -> None:
        now = time.perf_counter()
        if self._open:
            self.seconds[self._open[-1]] += now - self._since
        self._since = now


_CURRENT: ContextVar[Timings] = ContextVar("timings", default=Timings())  # noqa: B039  # of what nobody collects


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


def timed(name: str) -> AbstractContextManager[None]:
    """Measure a part of the timings that are being collected (`Timings.part`)."""
    return _CURRENT.get().part(name)
