"""Several looks at something that is slow to read."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from typing import Generic, TypeVar

Item = TypeVar("Item")


class ReadOnce(Generic[Item]):
    """An iterable over a slow source, whose beginning is kept.

    Whoever looks only at the beginning, to recognise a language for example, then costs no reading:
    the next pass repeats what is kept, and continues the same reading. A source of at most `keep`
    items is read once, however many passes there are. A longer one is read again for each pass
    after the first that goes beyond the beginning.

    Args:
        read: Starts a reading from the beginning.
        keep: Number of items to keep in memory.

    Example:
        lines = ReadOnce(lambda: open("corpus.txt"))
        first = next(iter(lines))
        count = sum(1 for _ in lines)  # the file was opened once
    """

    def __init__(self, read: Callable[[], Iterator[Item]], keep: int = 2000) -> None:
        self._read = read
        self._keep = keep
        self._kept: list[Item] = []
        # The reading that gave what is kept, and stands right after it; None once it went on.
        self._reading: Iterator[Item] | None = None
        self._has_started = False
        self._has_ended = False

    def __iter__(self) -> Iterator[Item]:
        place = 0
        while place < len(self._kept) or self._keep_next():
            yield self._kept[place]
            place += 1
        if self._has_ended:
            return
        if self._reading is None:
            yield from islice(self._read(), place, None)
            return
        rest = self._reading
        self._reading = None
        yield from rest

    def _keep_next(self) -> bool:
        """Read and keep one more item; return whether there was one, and room for it."""
        if self._has_ended or len(self._kept) >= self._keep:
            return False
        if not self._has_started:
            self._reading = self._read()
            self._has_started = True
        assert self._reading is not None
        try:
            self._kept.append(next(self._reading))
        except StopIteration:
            self._has_ended = True
            self._reading = None
            return False
        except BaseException:
            # A reading that failed has no rest; what is kept must not pass for all there is.
            self._kept.clear()
            self._has_started = False
            self._reading = None
            raise
        return True
