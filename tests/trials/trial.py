"""One hostile trial: a command with something wrong around it, run in a child process and judged by what it left."""

from __future__ import annotations

import os
import re
import resource
import shutil
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tests.trials.processes import start, wait_for

Expected = Literal["clear", "works", "either"]
Kind = Literal["clear", "worked", "hole", "traceback", "hang", "silent"]
KINDS: tuple[Kind, ...] = ("clear", "worked", "hole", "traceback", "hang", "silent")
FAILED = KINDS[2:]
PLANTED = "planted"
"""A file beside the command's folder that code of a stranger makes, if it runs, or a connection to a network."""
OUTSIDE = "outside"
"""A folder beside the command's, of a user's: a trial that reaches it has found a hole."""
_STEERING = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
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
        expected: `clear` where only an error is right, `works` where only success is, `either`
            where both are.
        environment: Variables to set for the command (None removes one).
        prepare_process: Called last, in the child: limits on the process.
    """

    family: str
    name: str
    command: Callable[[Path], list[str]]
    expected: Expected = "either"
    environment: dict[str, str | None] = field(default_factory=dict)
    prepare_process: Callable[[], object] = lambda: None


def made(
    make: Callable[[Path], object], name: str, arguments: list[str]
) -> Callable[[Path], list[str]]:
    """A command in a folder where `make` has made this name."""

    def prepared(work: Path) -> list[str]:
        make(work / name)
        return arguments

    return prepared


@dataclass(frozen=True)
class Outcome:
    """What came of a trial, and the words that show it."""

    kind: Kind
    words: str


def run_trial(trial: Trial, folder: Path) -> Outcome:
    """Run a trial in a child process of its own, in `folder`, which is removed afterwards."""

    outside = folder / OUTSIDE
    outside.mkdir(parents=True)
    (outside / "keep").write_text("precious")

    def prepare() -> None:
        _report_connections(folder / PLANTED)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        trial.prepare_process()

    where = {"cache": folder / "cache", "environment": trial.environment, "words": "../words"}
    child = start(folder / "work", trial.command, prepare, **where)
    outcome = _judge(trial, folder, wait_for(child, SECONDS))
    _remove(folder)
    return outcome


def _report_connections(planted: Path) -> None:
    """Let this process leave a file if it looks up a host or connects to one; the hub counts as reachable."""
    from huggingface_hub import constants

    constants.HF_HUB_OFFLINE = False

    def refused(*place: object, **_: object) -> object:
        planted.write_text(f"a connection to {place}")
        raise OSError("no network in trials")

    socket.getaddrinfo = refused  # type: ignore[assignment]
    socket.create_connection = refused  # type: ignore[assignment]


def _judge(trial: Trial, folder: Path, status: int | None) -> Outcome:
    path = folder / "words"
    words = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    if (folder / PLANTED).exists():
        return Outcome("hole", (folder / PLANTED).read_text())
    kept = {file.name: file.read_text() for file in (folder / OUTSIDE).iterdir() if file.is_file()}
    if kept != {"keep": "precious"}:
        return Outcome("hole", f"the user's folder has {sorted(kept)}")
    printed = words
    output = path.with_name("words-out")
    if output.is_file():
        printed += output.read_text(encoding="utf-8", errors="replace")
    steering = _STEERING.search(printed)
    if steering:
        return Outcome("hole", f"a raw {steering[0]!r} was printed")
    lines = [line for line in words.replace("\r", "\n").split("\n") if line.strip()]
    last = lines[-1] if lines else ""
    if status is None:
        return Outcome("hang", last)
    if "Traceback (most recent call last)" in words or status not in (0, 2, 130):
        return Outcome("traceback", f"exit {status}: {last}")
    if status == 0:
        return Outcome("silent", "accepted") if trial.expected == "clear" else Outcome("worked", "")
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
