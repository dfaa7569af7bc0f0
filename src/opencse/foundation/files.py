"""Files and folders that appear whole or not at all, and locks, by which only one process writes into a folder."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
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

_ATTEMPTS = 10  # to rename a folder that other processes rename too


@contextlib.contextmanager
def replaced(path: Path, *, folder: bool = False) -> Iterator[Path]:
    """Yield a temporary file beside `path`, or an empty folder; if the block succeeds, it replaces `path` in one step.

    A killed process leaves the old folder, the new one, or (between two renames) the old one under
    a dotted name and no `path`, but never a mixture.

    Raises:
        OpencseError: The file or folder cannot be written, or the disk is full.
    """
    with writable(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
        temporary.mkdir() if folder else temporary.touch()
        mode = stat.S_IMODE(
            temporary.stat().st_mode
        )  # as the user's umask has it; some writers set other modes
    try:
        yield temporary
        for file in temporary.rglob("*") if folder else (temporary,):
            file.chmod(mode if file.is_dir() else mode & 0o666)
            if file.is_file():
                with file.open(
                    "r+b"
                ) as stream:  # Windows syncs only files that are open for writing
                    os.fsync(stream.fileno())
        with writable(path):
            _put_in_place(temporary, path) if folder else temporary.replace(path)
    except Exception as error:
        if (explanation := disk_problem(error)) is None:
            raise
        problem, remedy = explanation
        raise OpencseError(
            f"{path}: {problem}; nothing was half-written", f"{remedy} Runs go on with --resume."
        ) from error
    finally:
        with contextlib.suppress(OSError):
            shutil.rmtree(temporary, ignore_errors=True) if folder else temporary.unlink()


def _put_in_place(temporary: Path, path: Path) -> None:
    """Rename a folder, and replace any folder of the new name. Other processes may do the same at the same time."""
    old = path.with_name(f".{path.name}.{os.getpid()}.old")
    for attempt in range(_ATTEMPTS):
        try:
            temporary.rename(path)
            return
        except OSError as error:
            if error.errno not in (errno.ENOTEMPTY, errno.EEXIST) or attempt == _ATTEMPTS - 1:
                raise
        shutil.rmtree(old, ignore_errors=True)
        with contextlib.suppress(FileNotFoundError):  # another process was faster
            path.rename(old)
        shutil.rmtree(old, ignore_errors=True)


def write_text(path: Path, text: str) -> None:
    r"""Write a text file in one step.

    Half of a surrogate pair, as Python has it for file names that are not UTF-8, is written as an escape such as
    `\udcff`, which JSON can read back.
    """
    with replaced(path) as temporary:
        temporary.write_text(text, encoding="utf-8", errors="backslashreplace")


def write_json(path: Path, value: Any) -> None:
    """Write a JSON file in one step; a number that is not finite raises ValueError."""
    write_text(path, json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


@contextlib.contextmanager
def writable(path: Path) -> Iterator[None]:
    """Translate a failure to write: a read-only folder, a file in place of a folder, or a loop of links."""
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
    """Return what keeps a disk from taking a file, and the remedy; None for other errors.

    Libraries such as safetensors wrap the operating system's error in their own, so the message
    counts as well.
    """
    number, text = getattr(error, "errno", None), str(error).lower()
    if number in (errno.ENOSPC, errno.EDQUOT) or "no space left" in text:
        return (
            "the disk is full",
            "Free some space, or write to another disk (-o, TMPDIR, OPENCSE_CACHE).",
        )
    if number == errno.EFBIG or "file too large" in text:
        return (
            "the file is larger than the file system or a limit of this process allows",
            "Raise the limit with `ulimit -f unlimited`, or write to another disk (-o, TMPDIR, OPENCSE_CACHE).",
        )
    return None


CHECKSUMS = "checksums.json"


def write_checksums(folder: Path) -> None:
    """Write `checksums.json` into a folder, with the SHA-256 of every file by name."""
    sums = {
        path.relative_to(folder).as_posix(): sha256(path)
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
    (folder / CHECKSUMS).write_text(json.dumps(sums, indent=1), encoding="utf-8")


def find_damage(folder: Path) -> str | None:
    """Return a description of a missing or changed file of a sealed folder; None if it is intact."""
    try:
        sums = read_json(folder / CHECKSUMS)
        return next(
            (
                f"{name} was changed"
                for name, sum_ in sums.items()
                if sha256(stay_inside(folder, name)) != sum_
            ),
            None,
        )
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
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCK = ".lock"
_HELD: Counter[Path] = Counter()
"""How often this process has locked each folder: `run` calls functions that lock the same folder again."""


@contextlib.contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder. A missing folder is created, and removed again if nothing was written into it.

    The lock is the system's (`flock`), on the file `.lock`, and is released when the process ends,
    even if it is killed. Windows and file systems without locks have none.

    Raises:
        OpencseError: Another process holds the lock, or the folder cannot be written.
    """
    with writable(folder):
        place, new = Path(os.path.realpath(folder)), not folder.exists()
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
                (folder / LOCK).unlink(
                    missing_ok=True
                )  # before closing: nobody may lock a removed file
                file.close()
                if new:
                    folder.rmdir()  # fails unless the folder is empty


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
        except OSError:  # a file system without locks
            pass
        with contextlib.suppress(
            FileNotFoundError
        ):  # removed between opening and locking: try again
            if os.path.samestat(os.fstat(file.fileno()), (folder / LOCK).stat()):
                return file
        file.close()
