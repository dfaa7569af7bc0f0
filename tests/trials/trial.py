"""One hostile trial: a command with something wrong around it, run in a child process and judged by what it left."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import sys
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Expected = Literal["clear", "works", "either"]
Kind = Literal["clear", "worked", "traceback", "hang", "silent"]
KINDS: tuple[Kind, ...] = ("clear", "worked", "traceback", "hang", "silent")
FAILED = KINDS[2:]
SECONDS = 300
"""A trial that takes longer counts as hung; the slowest honest one takes a few seconds."""
MEMORY = 12 * 2**30
"""Bytes of address space: a command that reads without end meets this limit, not the machine's."""


@dataclass(frozen=True)
class Trial:
    """A command to run in an empty folder.

    Attributes:
        family: The kind of outside thing that is broken.
        name: What is wrong with it.
        command: Given the empty folder, prepares it and returns the command's arguments.
        expected: `clear` where only an error is right, `works` where only success is, `either` where both are.
        environment: Variables to set for the command (None removes one).
        check: Given the folder after success, says what is silently wrong, or None.
        prepare_process: Called last, in the child: limits on the process.
    """

    family: str
    name: str
    command: Callable[[Path], list[str]]
    expected: Expected = "either"
    environment: dict[str, str | None] = field(default_factory=dict)
    check: Callable[[Path], str | None] = lambda _: None
    prepare_process: Callable[[], object] = lambda: None


def made(make: Callable[[Path], object], name: str, arguments: list[str]) -> Callable[[Path], list[str]]:
    """A command in a folder where `make` has made this name."""

    def prepared(work: Path) -> list[str]:
        make(work / name)
        return arguments

    return prepared


def with_file(name: str, content: bytes, arguments: list[str]) -> Callable[[Path], list[str]]:
    """A command next to a file with these bytes."""

    def write(path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content)

    return made(write, name, arguments)


@dataclass(frozen=True)
class Outcome:
    """What came of a trial, and the words that show it."""

    kind: Kind
    words: str


def run_trial(trial: Trial, folder: Path) -> Outcome:
    """Run a trial in a child process of its own, in `folder`, which is removed afterwards."""
    folder.mkdir(parents=True)
    child = os.fork()
    if child == 0:
        _in_child(trial, folder)
    status = wait_for(child, SECONDS)
    outcome = _judge(trial, folder, status)
    _remove(folder)
    return outcome


def _in_child(trial: Trial, folder: Path) -> None:
    """Run the command as the shell would: its own exit code, its own standard error."""
    code = 99
    try:
        os.setsid()
        (folder / "work").mkdir()
        os.environ["OPENCSE_CACHE"] = str(folder / "cache")
        os.chdir(folder / "work")
        arguments = trial.command(folder / "work")
        for name, value in trial.environment.items():
            os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
        for stream, number in (("stdout", 1), ("stderr", 2)):
            os.dup2(os.open(folder / stream, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), number)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        trial.prepare_process()
        from opencse.cli.main import main

        sys.argv = ["opencse", *arguments]
        main()
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 98
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except (OSError, ValueError):
                code = code or 97
        os._exit(code)


def wait_for(child: int, seconds: float) -> int | None:
    """The exit code (negative for a signal), or None where the time ran out and the child was killed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None


def _judge(trial: Trial, folder: Path, status: int | None) -> Outcome:
    path = folder / "stderr"
    words = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    lines = [line for line in words.replace("\r", "\n").split("\n") if line.strip()]
    last = lines[-1] if lines else ""
    if status is None:
        return Outcome("hang", last)
    if "Traceback (most recent call last)" in words or status not in (0, 2, 130):
        return Outcome("traceback", f"exit {status}: {last}")
    if status == 0:
        wrong = "accepted" if trial.expected == "clear" else trial.check(folder / "work")
        return Outcome("silent" if wrong else "worked", wrong or "")
    if not last.startswith("opencse: ") or len(last) > 2000:
        return Outcome("traceback", f"not one clear line: {last[:200]}")
    if trial.expected == "works":
        return Outcome("silent", f"refused: {last}")
    return Outcome("clear", last)


def _remove(folder: Path) -> None:
    """Remove a folder, also what the command may not read."""
    for root, names, _ in os.walk(folder):
        for path in (Path(root) / name for name in names):
            path.is_symlink() or path.chmod(0o755)
    shutil.rmtree(folder, ignore_errors=True)
