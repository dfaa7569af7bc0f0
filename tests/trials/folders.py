"""Trials of folders: outputs below files, links, odd names, read-only and system folders, two runs at a time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.trials.trial import Expected, Trial
from tests.trials.world import World

Setting = tuple[str, str, Callable[[Path], object], Expected]


def trials(world: World) -> Iterator[Trial]:
    """Every odd output folder, for each command that writes one."""
    for name, out, make, expected in _places(world):
        for command, arguments in _commands(world).items():
            yield Trial("folders", f"{command}: {name}", _placed(arguments, out, make), expected)
    for command, arguments in _commands(world).items():
        yield Trial("folders", f"{command}: locked by another process", _locked(arguments), "clear")
        yield Trial("folders", f"{command}: lock of a dead process", _dead_lock(arguments), "works")
        yield Trial("folders", f"{command}: rubbish in the lock", _rubbish_lock(arguments), "works")
    for name, value in _temporary().items():
        yield Trial("folders", f"TMPDIR {name}", lambda _: world.train(), "either", {"TMPDIR": value})
        yield Trial("folders", f"cache {name}", lambda _: world.train(), "either", {"OPENCSE_CACHE": value})


def _commands(world: World) -> dict[str, list[str]]:
    return {
        "train": world.train()[:-4],
        "build": ["build", str(_words(world)), str(world.corpus), "--workers", "1"],
        "run": ["run", str(world.recipe), *world.train()[2:-4], "--set", "training.max_steps=1"],
    }


def _words(world: World) -> Path:
    """A recipe that builds a column without any model."""
    path = world.root / "words.toml"
    built = world.recipe.read_text() + '[views.more]\ntext = "more"\n[build.more]\nkind = "word_repetition"\n'
    path.write_text(built, encoding="utf-8")
    return path


def _placed(arguments: list[str], out: str, make: Callable[[Path], object]) -> Callable[[Path], list[str]]:
    def prepared(work: Path) -> list[str]:
        make(work)
        return [*arguments, "-o", out]

    return prepared


def _places(world: World) -> list[Setting]:
    return [
        ("below a file", "f/out", lambda w: (w / "f").write_text("x"), "clear"),
        ("far below a file", "f/a/b/out", lambda w: (w / "f").write_text("x"), "clear"),
        ("a file", "out", lambda w: (w / "out").write_text("x"), "clear"),
        ("a dangling link", "out", lambda w: (w / "out").symlink_to("nothing"), "either"),
        ("a dangling link into nowhere", "out", lambda w: (w / "out").symlink_to("/nowhere/at/all"), "either"),
        ("a link to itself", "out", lambda w: (w / "out").symlink_to(w / "out"), "clear"),
        ("two links in a circle", "a", lambda w: ((w / "a").symlink_to("b"), (w / "b").symlink_to("a")), "clear"),
        ("a link to a folder", "out", lambda w: ((w / "d").mkdir(), (w / "out").symlink_to("d")), "works"),
        ("not UTF-8", os.fsdecode(b"o\xffut"), lambda _: None, "clear"),
        ("a line's end in its name", "o\nut", lambda _: None, "works"),
        ("markup in its name", "[bold]out[/x]", lambda _: None, "works"),
        ("too long", "o" * 300, lambda _: None, "clear"),
        ("of 255 bytes", "o" * 255, lambda _: None, "either"),
        ("NUL in its name", "o\0ut", lambda _: None, "clear"),
        ("empty name", "", lambda _: None, "either"),
        ("/proc", "/proc/opencse", lambda _: None, "clear"),
        ("/proc itself", "/proc", lambda _: None, "clear"),
        ("/sys", "/sys/opencse", lambda _: None, "clear"),
        ("/dev/null", "/dev/null", lambda _: None, "clear"),
        ("below /dev/null", "/dev/null/out", lambda _: None, "clear"),
        ("a pipe", "out", lambda w: os.mkfifo(w / "out"), "clear"),
        ("dot", ".", lambda _: None, "either"),
        ("dash", "-", lambda _: None, "either"),
        ("with files of another's", "out", lambda w: ((w / "out").mkdir(), (w / "out" / "x").touch()), "either"),
    ]


_HOLDER = """
import sys, time
sys.path.insert(0, {source!r})
from pathlib import Path
from opencse.io.lock import locked
with locked(Path("out")):
    Path("ready").touch()
    time.sleep(30)
"""


def _hold(work: Path) -> subprocess.Popen[bytes]:
    source = str(Path(__file__).parents[2] / "src")
    holder = subprocess.Popen([sys.executable, "-c", _HOLDER.format(source=source)], cwd=work)
    while not (work / "ready").exists() and holder.poll() is None:
        time.sleep(0.02)
    return holder


def _locked(arguments: list[str]) -> Callable[[Path], list[str]]:
    def prepared(work: Path) -> list[str]:
        _hold(work)  # killed with the trial's process group, or by its own clock
        return [*arguments, "-o", "out"]

    return prepared


def _dead_lock(arguments: list[str]) -> Callable[[Path], list[str]]:
    def prepared(work: Path) -> list[str]:
        holder = _hold(work)
        holder.kill()
        holder.wait()
        assert (work / "out" / ".lock").is_file()
        return [*arguments, "-o", "out"]

    return prepared


def _rubbish_lock(arguments: list[str]) -> Callable[[Path], list[str]]:
    def prepared(work: Path) -> list[str]:
        (work / "out").mkdir()
        (work / "out" / ".lock").write_bytes(b"\xff\0rubbish")
        return [*arguments, "-o", "out"]

    return prepared


def _temporary() -> dict[str, str]:
    return {
        "missing": "/nowhere/at/all",
        "a file": "/etc/hostname",
        "in /proc": "/proc/opencse",
        "a device": "/dev/null",
        "too long": "/tmp/" + "t" * 300,
        "not UTF-8": os.fsdecode(b"t\xffmp"),
        "relative": "t",
        "empty": "",
    }
