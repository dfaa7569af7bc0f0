"""Trials of surroundings: odd output folders, variables, no home, few file handles, little memory, full disks."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.trials.processes import limit_memory
from tests.trials.trial import Expected, Trial, made
from tests.trials.world import World

Make = Callable[[Path], object]
OUTPUTS: dict[str, tuple[str, Make, Expected]] = {
    "a file": ("out", lambda w: (w / "out").write_text("x"), "clear"),
    "a dangling link": ("out", lambda w: (w / "out").symlink_to("nothing"), "either"),
    "markup and a line's end in its name": ("[bold]o\nut[/x]", lambda _: None, "works"),
    "/dev/null": ("/dev/null", lambda _: None, "clear"),
    "a pipe": ("out", lambda w: os.mkfifo(w / "out"), "clear"),
    "rubbish in the lock": (
        "out",
        lambda w: ((w / "out").mkdir(), (w / "out" / ".lock").write_bytes(b"\xff\0")),
        "works",
    ),
    "locked by another process": ("out", lambda w: _hold(w), "clear"),
    "lock of a dead process": ("out", lambda w: _end(_hold(w)), "works"),
}
VARIABLES: dict[str, tuple[dict[str, str | None], Expected]] = {
    **{
        f"{name} {place[:20]!r}": ({name: place}, "either")
        for name in ("OPENCSE_CACHE", "TMPDIR")
        for place in (
            "/nowhere/at/all",
            "/etc/hostname",
            "/proc/opencse",
            "/dev/null",
            "t" * 300,
            "",
        )
    },
    "no HOME": ({"HOME": None, "OPENCSE_CACHE": None}, "works"),
    "HOME in /proc": ({"HOME": "/proc", "OPENCSE_CACHE": None}, "clear"),
    "no PATH": ({"PATH": None}, "works"),
    "C locale": ({"LC_ALL": "C", "LANG": "C"}, "works"),
    "no terminal, 0 columns": ({"TERM": None, "COLUMNS": "0"}, "works"),
    "RANK a word": ({"RANK": "first"}, "either"),
}
_HOLDER = """
import time
from pathlib import Path
from opencse.foundation.files import locked
with locked(Path("out")):
    Path("ready").touch()
    time.sleep(30)
"""


def trials(world: World) -> Iterator[Trial]:
    """Every odd output folder, for each command that writes one; the rest through a short training run."""
    for name, (out, make, expected) in OUTPUTS.items():
        for command, arguments in world.commands().items():
            prepared = made(make, "", [*arguments, "-o", out])
            yield Trial("surroundings", f"{command}: output {name}", prepared, expected)
    for name, (environment, expected) in VARIABLES.items():
        yield Trial("surroundings", name, lambda _: world.train(), expected, environment)
    for name, prepare in _limits().items():
        yield Trial(
            "surroundings", name, lambda _: world.train(), "either", prepare_process=prepare
        )
    for arguments in (["recipes"], ["--help"], ["nonsense"], ["train"], [""]):
        for name, prepare in (("ASCII alone", _ascii), ("output full", _full)):
            yield Trial(
                "surroundings",
                f"{name}: {arguments}",
                lambda _, a=arguments: a,
                prepare_process=prepare,
            )


def _hold(work: Path) -> subprocess.Popen[bytes]:
    """Hold the lock of `out` in another process, which ends with the trial's process group, or by its own clock."""
    source = str(Path(__file__).parents[2] / "src")
    environment = {**os.environ, "PYTHONPATH": source}
    holder = subprocess.Popen([sys.executable, "-c", _HOLDER], cwd=work, env=environment)
    while not (work / "ready").exists() and holder.poll() is None:
        time.sleep(0.02)
    return holder


def _end(holder: subprocess.Popen[bytes]) -> None:
    holder.kill()
    holder.wait()


def _limits() -> dict[str, Callable[[], object]]:
    def handles(count: int) -> Callable[[], object]:
        return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))

    return {
        **{f"{count} file handles": handles(count) for count in (8, 16, 24, 64)},
        **{f"{more >> 20} MiB more memory": limit_memory(more) for more in (2**24, 2**26, 2**28)},
        "umask 777": lambda: os.umask(0o777),
    }


def _ascii() -> None:
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="ascii", errors="strict")  # type: ignore[union-attr]


def _full() -> None:
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
