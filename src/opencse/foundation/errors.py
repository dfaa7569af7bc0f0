"""Errors that users see: the problem and its remedy."""

from __future__ import annotations

import importlib
from typing import Any

_LONGEST = 900


class OpencseError(Exception):
    """An invalid input, with a message that says how to fix it.

    The command line prints it as one line and exits with code 2; from Python it is raised as it is.
    Anything that is not an `OpencseError` is a defect of this library.

    Args:
        problem: What is wrong, naming the file, key or value.
        remedy: What to do about it.
    """

    def __init__(self, problem: str, remedy: str = "") -> None:
        self.problem = _shortened(problem)
        self.remedy = _shortened(remedy)
        super().__init__(
            f"{self.problem.rstrip('.')}. {self.remedy}".strip() if remedy else self.problem
        )


def _shortened(text: str) -> str:
    """Return a text of at most `_LONGEST` characters: a file may hold a name or a number of any length."""
    return (
        text if len(text) <= _LONGEST else f"{text[: _LONGEST * 2 // 3]} … {text[-_LONGEST // 4 :]}"
    )


class Interrupted(Exception):
    """A run was interrupted after it had written a checkpoint, from which it can be resumed."""


def imported(package: str, extra: str) -> Any:
    """Return a package that only an extra of opencse installs.

    Raises:
        OpencseError: It is not installed.
    """
    try:
        return importlib.import_module(package)
    except ImportError:
        raise OpencseError(
            f"the package {package} is not installed", f'pip install "opencse[{extra}]"'
        ) from None
