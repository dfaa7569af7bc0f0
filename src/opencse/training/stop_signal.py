"""SIGINT and SIGTERM as a request to stop after the current step."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType


class StopSignal:
    """Whether SIGINT or SIGTERM was received; a second one ends the process at once."""

    received = False

    @contextlib.contextmanager
    def awaited(self) -> Iterator[None]:
        """Handle the signals in this context; Python allows handlers in the main thread only."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        old_handlers = {s: signal.signal(s, self._receive) for s in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in old_handlers.items():
                signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.received:
            sys.exit(130)
        self.received = True
