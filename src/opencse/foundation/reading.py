"""Reading of files that users give: every failure becomes a one-line `OpencseError`.

Code that reads through these functions need not check that a path is a regular file, that a
text is UTF-8, or that a JSON document is an object.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import io
import json
import os
import re
import stat
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PureWindowsPath
from typing import Any

from opencse.foundation.errors import OpencseError

ASSETS = Path(__file__).parents[1] / "assets"
"""Files that come with the package."""
FORMATS = ".txt, .jsonl, .csv, .tsv (each also .gz), .parquet, or a folder of Parquet files"
"""The formats of a corpus, for messages."""
PACKAGES = {".pdf": "pypdf", ".docx": "docx"}
"""Documents that need a package of the extra `documents`, and its module."""
UNREAD = (
    ".odt",
    ".epub",
    ".rst",
    ".rtf",
    ".tex",
    ".doc",
    ".pptx",
    ".xlsx",
    ".xls",
    ".ods",
    ".json",
    ".arrow",
)
"""Extensions of documents that people have and that are not read."""
LONGEST_LINE = 4 * 2**20
"""Bytes of the longest line, CSV field or JSON record that is read."""
LARGEST_DOCUMENT = 64 * 2**20
"""Bytes of the largest JSON document that is read at once."""
# Bytes that are read at a time of a file that is hashed.
_BUFFER = 64 * 2**10
# U+0085 is a line separator.
_CONTROL = re.compile("[\0\x80-\x84\x86-\x9f\ud800-\udfff]")
FIRST_LINES = 1000
"""Lines at the beginning of a text that may have no control character."""
# The same of files that are read as parts of one text.
_CHECKED_IN: dict[str, int] = {}
_FAILURES = (
    OSError,
    ValueError,
    EOFError,
    zlib.error,
    RecursionError,
    MemoryError,
    OverflowError,
    KeyError,
    TypeError,
)


@contextlib.contextmanager
def translate_errors(
    place: object, problem: str, remedy: str, *failures: type[Exception]
) -> Iterator[None]:
    """Turn the exceptions that readers raise on broken input into an `OpencseError`.

    Other exceptions pass.

    Args:
        place: The file, for the message.
        problem: The problem; the first line of the exception's message follows in brackets.
        remedy: What the user can do about it.
        failures: Exceptions to translate in addition to the usual ones.
    """
    expected: tuple[type[BaseException], ...] = (*_FAILURES, *failures)
    try:
        yield
    except OpencseError:
        raise
    except FileNotFoundError:
        raise OpencseError(f"{place}: no such file or folder", "Check the path.") from None
    except expected as error:
        raise OpencseError(f"{place}: {problem} ({error_reason(error)})", remedy) from error


def error_reason(error: BaseException) -> str:
    """Return the first line of an exception's message, at most 300 characters, or its class."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    lines = [line.strip() for line in str(error).splitlines()]
    for line in lines:
        if line:
            return line[:300]
    return type(error).__name__


def unknown_format(path: Path) -> OpencseError:
    """Return the error for a file whose format is not read."""
    kind = path.suffix.lower()
    if kind in PACKAGES and importlib.util.find_spec(PACKAGES[kind]) is not None:
        return OpencseError(
            f"{path}: this is a document, but a table or a list of texts is needed",
            f"Known: {FORMATS}.",
        )
    if kind in PACKAGES:
        return OpencseError(
            f"{path}: needs the package {PACKAGES[kind]} to be read",
            'pip install "opencse[documents]"',
        )
    if kind in UNREAD:
        return OpencseError(
            f"{path}: {kind[1:].upper()} files are not read",
            "Convert it first: text to Markdown or DOCX, tables to CSV or JSON Lines.",
        )
    return OpencseError(
        f"{path}: unknown corpus format '{path.suffix}'",
        f"Known: .md, .html, .pdf, .docx, {FORMATS}.",
    )


def file_extension(path: Path) -> str:
    """Return the extension of a file in lower case, without `.gz`: `.tsv` for `a.b.TSV.gz`."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    for suffix in reversed(suffixes):
        if suffix != ".gz":
            return suffix
    return ""


# The first bytes of files that hold no lines of text, whatever their name.
_BINARY = {
    b"PK\x03\x04": "a ZIP archive, such as .xlsx or .docx",
    b"%PDF": "a PDF document",
    b"PAR1": "a Parquet file",
    b"\xd0\xcf\x11\xe0": "an old Office document, such as .xls or .doc",
    b"\x28\xb5\x2f\xfd": "a Zstandard archive",
    b"BZh": "a bzip2 archive",
    b"\xfd7zXZ": "an xz archive",
    b"SQLite format 3": "an SQLite database",
    b"{\\rtf": "an RTF document",
}


def check_is_text(path: Path, first: bytes) -> None:
    """Check the first bytes of a file that is to be read as text.

    Raises:
        OpencseError: They are those of another kind of file.
    """
    for mark, kind in _BINARY.items():
        if first.startswith(mark):
            raise OpencseError(
                f"{path}: {kind}, not text",
                "Give it the extension of its kind, or export it as text.",
            )


def is_hidden(name: str) -> bool:
    """Return whether a file or folder of this name is no data: `.cache`, `_SUCCESS`, `~$open.docx`."""
    return name.startswith((".", "_", "~"))


@dataclass
class FileTally:
    """What is known of the bytes of a file after it was read to its end, for whatever purpose.

    Whoever reads a large file passes one along, so that hashing the file needs no reading of its own.

    Attributes:
        digest: BLAKE2b hash of the bytes; empty until the end is reached.
        line_feeds: Number of line feeds.
    """

    digest: str = ""
    line_feeds: int = 0


def open_tallied(path: Path, tally: FileTally) -> io.BufferedReader:
    """Open a file for reading bytes from beginning to end; `tally` is filled in at the end."""
    return io.BufferedReader(_TalliedFile(path, tally), _BUFFER)


def fill_tally(path: Path, tally: FileTally) -> None:
    """Read a file for its tally alone.

    Raises:
        OpencseError: The file cannot be read.
    """
    with (
        translate_errors(path, "cannot be read", "Check the file."),
        open_tallied(path, tally) as file,
    ):
        while file.read(2**20):
            pass


class _TalliedFile(io.RawIOBase):
    """A file that hashes what is read from it."""

    def __init__(self, path: Path, tally: FileTally) -> None:
        self._file = path.open("rb", buffering=0)
        self._tally = tally
        self._hash = new_file_hash()
        self._line_feeds = 0

    def readable(self) -> bool:
        """Return True: a buffered reader asks."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer, and return the number of bytes; 0 at the end."""
        size = self._file.readinto(buffer) or 0
        content = bytes(memoryview(buffer)[:size])
        self._hash.update(content)
        self._line_feeds += content.count(b"\n")
        if size == 0:
            # Only now are all bytes known; a reader that stops earlier leaves the tally empty.
            self._tally.digest = self._hash.hexdigest()
            self._tally.line_feeds = self._line_feeds
        return size

    def close(self) -> None:
        """Close the file."""
        self._file.close()
        super().close()


def new_file_hash() -> hashlib.blake2b:
    """Return the hash by which files are known, before any byte."""
    return hashlib.blake2b(digest_size=16)


def as_items(value: Any) -> Any:
    """Return a sequence that a user gave; a lone string or path is one item."""
    return (value,) if isinstance(value, str | os.PathLike) else value


def existing_path(path: str | Path) -> Path:
    """Return the path of a regular file or a folder, after checking that it exists.

    Devices, pipes and sockets are refused: they have no end or can be read only once, but a corpus
    is read repeatedly.

    Raises:
        OpencseError: The path is empty, there is no file or folder at it, or it is of another kind.
    """
    if not str(path):
        raise OpencseError("the path is empty", "Write `.` for the current folder.")
    path = Path(path)
    with translate_errors(path, "cannot be read", "Check the path."):
        mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise OpencseError(
            f"{path}: is a device, a pipe or a socket, not a file", "Write it to a file first."
        )
    return path


def regular_file(path: str | Path) -> Path:
    """Return the path of a regular file, after checking that it exists.

    Raises:
        OpencseError: As `existing_path`; or the path is a folder.
    """
    path = existing_path(path)
    if path.is_dir():
        raise OpencseError(f"{path}: is a folder, not a file", "Name a file.")
    return path


def stay_inside(folder: Path, name: object, remedy: str = "") -> Path:
    """Return the path of a name within a folder, after checking that it stays inside.

    Everything that a stranger's file names is resolved here: shards of weights, modules of models,
    stages of recipes. A snapshot in the cache of the hub may link to its own `blobs`.

    Args:
        folder: The folder.
        name: A relative path in the spelling of any system; empty for the folder itself.
        remedy: What the user can do, for the message.

    Raises:
        OpencseError: The name is not a text, is absolute, climbs out, or is a link that leads out.
    """
    if not isinstance(name, str):
        raise OpencseError(f"{folder}: {name!r:.80} is not the name of a file", remedy)
    windows = PureWindowsPath(name)
    if "\0" in name or windows.anchor or ".." in windows.parts or Path(name).is_absolute():
        raise OpencseError(f"{folder}: '{name}' is outside the folder", remedy)
    path = folder / name
    with translate_errors(path, "cannot be read", remedy):
        home = Path(os.path.realpath(folder))
        target = Path(os.path.realpath(path))
    allowed = [home]
    is_snapshot = home.parent.name == "snapshots" and home.parents[1].name.startswith("models--")
    if is_snapshot:
        allowed.append(home.parents[1] / "blobs")
    if not any(target == place or place in target.parents for place in allowed):
        raise OpencseError(f"{path}: is a link that leads out of the folder", remedy)
    return path


def read_text(path: str | Path, remedy: str = "Save it as UTF-8 text.") -> str:
    """Return the text of a UTF-8 file of at most `LARGEST_DOCUMENT` bytes, without a mark.

    Raises:
        OpencseError: The file is missing, cannot be read, is too large, or is not UTF-8.
    """
    path = regular_file(path)
    with translate_errors(path, "cannot be read", "Check the file."), path.open("rb") as file:
        content = file.read(LARGEST_DOCUMENT + 1)
    if len(content) > LARGEST_DOCUMENT:
        raise OpencseError(f"{path}: larger than {LARGEST_DOCUMENT >> 20} MiB", remedy)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise OpencseError(
            f"{path}: not valid UTF-8 ({error.reason} at byte {error.start})", remedy
        ) from None


def read_json(path: str | Path, remedy: str = "Write it again.") -> dict[str, Any]:
    """Return the JSON object in a file.

    Raises:
        OpencseError: As `read_text`; or the text is not a JSON object.
    """
    return json_object(read_text(path, remedy), str(path), remedy)


def json_object(text: str, place: str, remedy: str) -> dict[str, Any]:
    """Parse a JSON object; `place` names it in messages.

    Raises:
        OpencseError: The text is not JSON or not an object, is nested too deep, or has a number of
            more than 4,300 digits.
    """
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise OpencseError(f"{place}: not JSON ({error.msg})", remedy) from None
    except (ValueError, RecursionError) as error:
        raise OpencseError(
            f"{place}: not JSON that can be read ({error_reason(error)})", remedy
        ) from None
    if not isinstance(value, dict):
        raise OpencseError(f"{place}: not a JSON object", remedy)
    return value


def require_columns(columns: Sequence[str], present: Sequence[str], path: Path) -> None:
    """Check that a table has some columns; `path` names it in the message.

    Raises:
        OpencseError: One of them is missing.
    """
    for column in columns:
        if column not in present:
            raise OpencseError(
                f"{path}: no column '{column}'", f"It has: {', '.join(present) or 'none'}."
            )


def checked_lines(path: Path, count: int | None = None) -> int:
    """Return how many first lines of a file may have no control character, after setting it to a given count."""
    if count is not None:
        _CHECKED_IN[str(path)] = count
    return _CHECKED_IN.get(str(path), FIRST_LINES)


def check_characters(text: str, path: Path, line: int) -> None:
    """Refuse a NUL, half of a surrogate pair, and early in a file control characters above U+007F.

    In the first lines, such a control character shows that the encoding was mistaken.

    Raises:
        OpencseError: A line or a cell of a file has such a character; the message names the line.
    """
    if text.isascii() and "\0" not in text:
        return
    wrong = _CONTROL.search(text)
    if wrong is None:
        return
    character = wrong[0]
    if character == "\0":
        problem = "a NUL character, which no text has"
        remedy = "Convert it with `iconv -f utf-16le -t utf-8`."
    elif character >= "\ud800":
        problem = "half of a surrogate pair, which is no character"
        remedy = "Write both halves."
    elif line < checked_lines(path):
        problem = (
            f"the control character U+{ord(character):04X}; text of Windows (cp1252) was read as "
            "Latin-1"
        )
        remedy = "Convert it with `iconv -f utf-8 -t latin1 | iconv -f cp1252 -t utf-8`."
    else:
        # Large web corpora have some control characters in later lines.
        return
    raise OpencseError(f"{path}, line {line}: {problem}", remedy)
