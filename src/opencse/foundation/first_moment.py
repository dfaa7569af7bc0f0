"""Ctrl-C in the first moment of the command line, while opencse is still being imported.

There is no code yet that could handle a `KeyboardInterrupt`: Python would print a traceback of the
import. So the package itself begins by answering the signal, but only if the command line started
it; a program that imports opencse keeps its own handling.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

_LINE = b"opencse: stopped\n"
_INTERRUPTED = 130


def started_as_command() -> bool:
    """Return whether this process is `opencse` or `python -m opencse`."""
    if os.path.basename(sys.argv[0]) in ("opencse", "opencse.exe", "opencse-script.py"):
        return True
    # So it is called while Python looks for the module of `-m`.
    if sys.argv[0] != "-m":
        return False
    given = sys.orig_argv
    return given[given.index("-m") + 1 :][:1] == ["opencse"]


def answer_interrupts() -> None:
    """Let Ctrl-C end this process with one line, until `raise_interrupts`."""
    # One that a shell started in the background ignores Ctrl-C, and must go on to.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, _stop)


def raise_interrupts() -> None:
    """Let Ctrl-C be a `KeyboardInterrupt` again; call this where one is handled."""
    if signal.getsignal(signal.SIGINT) is _stop:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _stop(*_: Any) -> None:
    # Of several processes, the first one speaks.
    if os.environ.get("RANK", "0") == "0":
        os.write(2, _LINE)
    # Nothing was written that would have to be cleaned up, and a library that is being imported may
    # catch every exception.
    os._exit(_INTERRUPTED)
