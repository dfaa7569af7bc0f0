"""Errors that users see: the problem and its remedy."""

from __future__ import annotations

import importlib
from typing import Any

_LONGEST = 900


class OpencseError(Exception):
    """An invalid input, with a message that tells how to fix it.

    The command line prints it as one line and exits with code 2; in Python it is an exception.
    Any other exception is a bug in this library.

    Args:
        problem: What is wrong, naming the file, key or value.
        remedy: What to do about it.
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        self.problem = _shortened(problem)
        self.remedy = _shortened(remedy)
        message = self.problem
        if remedy:
            message = f"{self.problem.rstrip('.')}. {self.remedy}".strip()
        super().__init__(message)


def _shortened(text: str) -> str:
    """Cut a text to about `_LONGEST` characters, because a file may hold a name of any length."""
    if len(text) <= _LONGEST:
        return text
    start = text[: _LONGEST * 2 // 3]
    end = text[-_LONGEST // 4 :]
    return f"{start} … {end}"


class Interrupted(Exception):
    """A run was interrupted after it had written a checkpoint, from which it can be resumed."""


def imported(package: str, extra: str) -> Any:
    """Import a package that only an optional extra of opencse installs, and return it.

    Raises:
        OpencseError: The package is not installed.
    """
    try:
        return importlib.import_module(package)
    except ImportError:
        raise OpencseError(
            f"the package {package} is not installed", f'pip install "opencse[{extra}]"'
        ) from None
