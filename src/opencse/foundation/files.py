"""Files and folders that appear complete or not at all, and locks on folders.

A locked folder has only one process that writes into it.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import stat
import tempfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any
from uuid import uuid4

from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import read_json, stay_inside

# Attempts to rename a folder that other processes rename too.
_ATTEMPTS = 10


@contextlib.contextmanager
def replaced(path: Path, *, folder: bool = False) -> Iterator[Path]:
    """Yield a temporary file or folder next to `path`, which replaces `path` if the block succeeds.

    A killed process leaves the old folder, the new one, or (between two renames) the old one under
    a dotted name and no `path`, but never a mixture.

    Raises:
        OpencseError: The file or folder cannot be written, or the disk is full.
    """
    with writable(path):
        if path.exists() and not (path.is_file() or path.is_dir()):
            # Renaming would replace the device itself, if the user may do that.
            raise OpencseError(
                f"{path}: is a device, a pipe or a socket, not a file", "Name a file to write."
            )
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
        if folder:
            temporary.mkdir()
        else:
            temporary.touch()
        # The mode that the user's umask gives; some writers set other modes.
        mode = stat.S_IMODE(temporary.stat().st_mode)
    try:
        yield temporary
        written = list(temporary.rglob("*")) if folder else [temporary]
        for file in written:
            file.chmod(mode if file.is_dir() else mode & 0o666)
            if file.is_file():
                # Windows syncs only files that are open for writing.
                with file.open("r+b") as stream:
                    os.fsync(stream.fileno())
        with writable(path):
            if folder:
                _put_in_place(temporary, path)
            else:
                temporary.replace(path)
    except Exception as error:
        explanation = disk_problem(error)
        if explanation is None:
            raise
        problem, remedy = explanation
        raise OpencseError(
            f"{path}: {problem}; no file was left incomplete",
            f"{remedy} Continue a run with --resume.",
        ) from error
    finally:
        # After success the temporary name is gone.
        with contextlib.suppress(OSError):
            if folder:
                shutil.rmtree(temporary, ignore_errors=True)
            else:
                temporary.unlink()


def _put_in_place(temporary: Path, path: Path) -> None:
    """Rename a folder to `path`, replacing any folder there; other processes may do the same."""
    old = path.with_name(f".{path.name}.{os.getpid()}.old")
    for attempt in range(_ATTEMPTS):
        try:
            temporary.rename(path)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or attempt == _ATTEMPTS - 1:
                raise
        shutil.rmtree(old, ignore_errors=True)
        # Another process may have moved it first.
        with contextlib.suppress(FileNotFoundError):
            path.rename(old)
        shutil.rmtree(old, ignore_errors=True)


_LEFT_OVER = re.compile(r"\..+\.[0-9a-f]{32}\.tmp")


def remove_left_overs(folder: Path) -> None:
    """Remove the temporary files and folders in a folder that killed processes were writing (`replaced`).

    Nobody else may write into the folder: the caller holds its lock.
    """
    if not folder.is_dir():
        return
    for path in folder.iterdir():
        if _LEFT_OVER.fullmatch(path.name):
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    r"""Write a text file in one step.

    Half of a surrogate pair, which Python uses in file names that are not UTF-8, is written as an
    escape such as `\udcff`, which JSON can read back.
    """
    with replaced(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file in one step; a number that is not finite raises ValueError."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


@contextlib.contextmanager
def writable(path: Path) -> Iterator[None]:
    """Translate a failure to write: a read-only folder, a file instead of a folder, a loop of links."""
    try:
        yield
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        remedy = "Choose another place: another -o, or OPENCSE_CACHE=FOLDER for the cache."
        raise OpencseError(f"{path}: cannot be written ({reason})", remedy) from error


def make_folder(path: Path) -> Path:
    """Create a folder and its parents, and check that files can be written into it.

    Raises:
        OpencseError: A file has this name, the file system is read-only or full, or the name is not
            allowed.
    """
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise OpencseError(
            f"{path}: the folder's name is not UTF-8",
            "Some libraries cannot write there: choose another.",
        ) from None
    with writable(path):
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):
            pass
    return path


def disk_problem(error: BaseException) -> tuple[str, str] | None:
    """Return why a disk cannot take a file, and the remedy; None for other errors.

    Libraries such as safetensors wrap the operating system's error in their own, so the message
    counts as well.
    """
    number = getattr(error, "errno", None)
    text = str(error).lower()
    if number in (errno.ENOSPC, errno.EDQUOT) or "no space left" in text:
        return (
            "the disk is full",
            "Free some space, or write to another disk (-o, TMPDIR, OPENCSE_CACHE).",
        )
    if number == errno.EFBIG or "file too large" in text:
        return (
            "the file is larger than the file system or a limit of this process allows",
            "Raise the limit with `ulimit -f unlimited`, or write to another disk "
            "(-o, TMPDIR, OPENCSE_CACHE).",
        )
    return None


CHECKSUMS = "checksums.json"


def write_checksums(folder: Path) -> None:
    """Write `checksums.json` into a folder, with the SHA-256 of every file by name."""
    sums = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            sums[path.relative_to(folder).as_posix()] = sha256(path)
    (folder / CHECKSUMS).write_text(json.dumps(sums, indent=1), encoding="utf-8")


def find_damage(folder: Path) -> str | None:
    """Describe a missing or changed file of a sealed folder; None if it is intact."""
    try:
        sums = read_json(folder / CHECKSUMS)
        for name, expected in sums.items():
            if sha256(stay_inside(folder, name)) != expected:
                return f"{name} was changed"
        return None
    except OpencseError as error:
        return error.problem
    except (OSError, ValueError) as error:
        return str(error)


def sha256(path: Path) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


try:
    import fcntl
# Windows has no such locks.
except ImportError:
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"
# How often this process has locked each folder, as functions may lock it again.
_HELD: Counter[Path] = Counter()


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, created if missing, and removed again if it stays empty.

    The lock is the system's (`flock`), on the file `.lock`, and is released when the process ends,
    even if it is killed. Windows and file systems without locks have none.

    Raises:
        OpencseError: Another process holds the lock, or the folder cannot be written.
    """
    with writable(folder):
        place = Path(os.path.realpath(folder))
        new = not folder.exists()
    file = None
    if not _HELD[place]:
        make_folder(folder)
        with writable(folder):
            file = _lock(folder)
    _HELD[place] += 1
    try:
        yield
    finally:
        _HELD[place] -= 1
        if file is not None:
            with contextlib.suppress(OSError):
                # Remove before closing, so that nobody can lock a removed file.
                (folder / LOCK).unlink(missing_ok=True)
                file.close()
                if new:
                    # Fails unless the folder is empty.
                    folder.rmdir()


def _lock(folder: Path) -> IO[bytes]:
    while True:
        file = (folder / LOCK).open("ab")
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            raise OpencseError(
                f"{folder}: in use by another process",
                "Wait until it ends, or choose another folder.",
            ) from None
        # Some file systems of networks know no locks.
        except OSError:
            pass
        # Another process may have removed the file between opening and locking: then try again.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(file.fileno()), (folder / LOCK).stat()):
                return file
        file.close()
