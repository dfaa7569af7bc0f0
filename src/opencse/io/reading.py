"""The door for files from outside: whatever goes wrong when one is read becomes one clear line.

Behind it nothing needs to check again that a path is a regular file, that a text is UTF-8 or that a JSON document is
an object.
"""

from __future__ import annotations

import contextlib
import json
import stat
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from opencse.errors import OpencseError

LONGEST_LINE = 4 * 2**20
"""Bytes of the longest line, CSV field or JSON record that is read."""
LARGEST_DOCUMENT = 64 * 2**20
"""Bytes of the largest JSON document that is read whole."""
LARGEST_SETTINGS = 2**20
"""Bytes of the largest recipe or settings file."""
_FAILURES = (OSError, ValueError, EOFError, zlib.error, RecursionError, MemoryError, OverflowError, KeyError, TypeError)


@contextlib.contextmanager
def translated(place: object, problem: str, remedy: str, *failures: type[Exception]) -> Iterator[None]:
    """Turn what a reader raises into an `OpencseError`; other errors pass.

    Args:
        place: The file, for the message.
        problem: What is wrong with it; the reader's own first line follows in brackets.
        remedy: What to do about it.
        failures: Further exceptions that the reader raises on broken input, beside the usual ones.
    """
    expected: tuple[type[BaseException], ...] = (*_FAILURES, *failures)
    try:
        yield
    except OpencseError:
        raise
    except FileNotFoundError:
        raise OpencseError(f"{place}: no such file or folder", "Check the path.") from None
    except expected as error:
        raise OpencseError(f"{place}: {problem} ({reason(error)})", remedy) from error


def reason(error: BaseException) -> str:
    """Return the first line of what an exception says, or its name."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    if isinstance(error, RecursionError):
        return "nested too deep"
    if isinstance(error, MemoryError):
        return "it does not fit into memory"
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)[:300]


def existing(path: str | Path) -> Path:
    """Return a path at which a regular file or a folder is.

    Raises:
        OpencseError: Nothing is there, the path is none, or it is a device, a pipe or a socket: these have no end or
            can be read only once, and a corpus is read several times.
    """
    path = Path(path)
    with translated(path, "cannot be read", "Check the path."):
        mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OpencseError(f"{path}: is a device, a pipe or a socket, not a file", "Write it to a file first.")
    return path


def regular_file(path: str | Path) -> Path:
    """Return a path at which a regular file is.

    Raises:
        OpencseError: As `existing`; or it is a folder.
    """
    path = existing(path)
    if path.is_dir():
        raise OpencseError(f"{path}: is a folder, not a file", "Name a file.")
    return path


def read_text(path: str | Path, remedy: str = "Save it as UTF-8 text.", limit: int = LARGEST_DOCUMENT) -> str:
    """Return a whole document in UTF-8, of at most `limit` bytes; a byte order mark is dropped.

    Raises:
        OpencseError: There is no such file, it cannot be read, is too large, or is not UTF-8.
    """
    path = regular_file(path)
    with translated(path, "cannot be read", "Check the file."), path.open("rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:
        raise OpencseError(f"{path}: larger than {limit >> 20} MiB", remedy)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise OpencseError(f"{path}: not valid UTF-8 ({error.reason} at byte {error.start})", remedy) from None


def read_json(path: str | Path, remedy: str = "Write it again.") -> dict[str, Any]:
    """Return a JSON object that a file holds.

    Raises:
        OpencseError: As `read_text`; or it is not JSON, or no object.
    """
    return json_object(read_text(path, remedy), str(path), remedy)


def json_object(text: str, place: str, remedy: str) -> dict[str, Any]:
    """Parse a JSON object; `place` names it in messages.

    Raises:
        OpencseError: It is not JSON, is nested too deep, holds a number of more than 4,300 digits, or is no object.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise OpencseError(f"{place}: not JSON ({error.msg})", remedy) from None
    except (ValueError, RecursionError) as error:
        raise OpencseError(f"{place}: not JSON that can be read ({reason(error)})", remedy) from None
    if not isinstance(value, dict):
        raise OpencseError(f"{place}: not a JSON object", remedy)
    return value
