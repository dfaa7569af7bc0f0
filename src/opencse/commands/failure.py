"""Unexpected failures: one line for the user, and a report file for the developers."""

from __future__ import annotations

import datetime
import errno
import os
import platform
import sys
import tempfile
import traceback
from pathlib import Path

from opencse.foundation.errors import OpencseError
from opencse.foundation.files import disk_problem
from opencse.training.folder import package_versions

_MEMORY = ("can't allocate memory", "out of memory", "unable to mmap", "cannot allocate memory", "bad_alloc")
_THREADS = ("can't start new thread", "thread creation failed")
_PEER = ("closed by peer", "reset by peer", "connection refused", "broken pipe", "timed out")


def shortage(error: BaseException) -> OpencseError | None:
    """Return the user error for a machine that ran out of memory, disk, file handles or processes; None for others."""
    number = getattr(error, "errno", None)
    text = str(error).lower()
    if isinstance(error, MemoryError) or number == errno.ENOMEM or any(part in text for part in (*_MEMORY, *_THREADS)):
        return OpencseError(
            "the memory is full", "Use fewer sentences per step (--set training.batch_size=…) or fewer --workers."
        )
    if disk := disk_problem(error):
        return OpencseError(*disk)
    if number in (errno.EMFILE, errno.ENFILE) or "too many open files" in text:
        return OpencseError("too many files are open", "Raise the limit, for example with `ulimit -n 4096`.")
    if os.environ.get("WORLD_SIZE", "1") != "1" and any(part in text for part in _PEER):
        return OpencseError(
            "another process of this run has ended or did not start", "See what it said, then go on with --resume."
        )
    return None


def write_failure_report(error: BaseException) -> Path | None:
    """Write a failure report to a new temporary file; return None if no file can be written."""
    lines = [
        "Please file this report with the project: what you did, and everything below.",
        f"time: {datetime.datetime.now(datetime.UTC):%Y-%m-%d %H:%M:%S} UTC",
        f"command: {sys.argv}",
        f"python: {platform.python_version()} on {platform.platform()}",
        *(f"{name}: {version}" for name, version in package_versions().items()),
        "",
        "".join(traceback.format_exception(error)),
    ]
    try:
        handle, name = tempfile.mkstemp(prefix="opencse-report-", suffix=".txt")
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write("\n".join(lines))
    except OSError:
        return None
    return Path(name)
