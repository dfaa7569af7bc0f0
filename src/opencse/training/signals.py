"""SIGINT and SIGTERM: training ends after the step that it is in."""

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
        old_handlers = {}
        for number in (signal.SIGINT, signal.SIGTERM):
            old_handlers[number] = signal.signal(number, self._receive)
        try:
            yield
        finally:
            for number, handler in old_handlers.items():
                signal.signal(number, handler)

    def _receive(self, number: int, frame: FrameType | None) -> None:
        if self.received:
            sys.exit(130)
        self.received = True
