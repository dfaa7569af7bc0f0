"""Locks of folders, so that two processes never write into one folder at the same time."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from opencse.foundation.errors import OpencseError
from opencse.foundation.files import make_folder, writable

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

    The lock is one of the operating system, on the file `.lock`, which also says who holds it. The system releases the
    lock when the process ends, even if it is killed.

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
                (folder / LOCK).unlink(missing_ok=True)  # before closing: nobody may lock a removed file
                file.close()
                if new:
                    folder.rmdir()  # fails unless the folder is empty


def _lock(folder: Path) -> IO[str]:
    while True:
        file = (folder / LOCK).open("a+", encoding="utf-8")
        try:
            if fcntl is not None:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OpencseError(
                f"{folder}: in use by {_holder(file)}", "Wait until it ends, or choose another folder."
            ) from None
        except OSError:  # a file system without locks
            pass
        with contextlib.suppress(FileNotFoundError):  # removed between opening and locking: try again
            if os.path.samestat(os.fstat(file.fileno()), (folder / LOCK).stat()):
                break
        file.close()
    file.truncate(0)
    holder = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}
    file.write(json.dumps(holder) + "\n")
    file.flush()
    return file


def _holder(file: IO[str]) -> str:
    """Return what a lock says of the process that holds it, and close the file."""
    with file, contextlib.suppress(ValueError, KeyError, TypeError):
        file.seek(0)
        holder = json.loads(file.readline())
        return f"process {holder['pid']} on {holder['host']}, since {holder['since']}"
    return "another process"


def launched_processes() -> int:
    """Return how many processes a launcher such as `torchrun` started to work together; 1 without a launcher.

    Raises:
        OpencseError: The variables that launchers set are not complete, or make no sense.
    """
    given = {name: os.environ.get(name) or "" for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK")}
    if not any(given.values()):
        return 1
    numbers = all(value.isdecimal() for value in given.values())
    if not numbers or int(given["RANK"]) >= int(given["WORLD_SIZE"]):
        shown = ", ".join(f"{name}={value}" if value else f"no {name}" for name, value in given.items())
        raise OpencseError(
            f"the variables of a launcher make no sense: {shown}",
            "Unset them (`unset WORLD_SIZE RANK LOCAL_RANK`); launchers such as `torchrun` set all of them.",
        )
    return int(given["WORLD_SIZE"])
