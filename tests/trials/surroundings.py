"""Trials of surroundings: odd variables, no home, few file handles, little memory, closed output."""

from __future__ import annotations

import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.trials.trial import Expected, Trial
from tests.trials.world import World


def trials(world: World) -> Iterator[Trial]:
    """Each through a short training run."""
    for name, (environment, expected) in _variables().items():
        yield Trial("surroundings", name, lambda _: world.train(), expected, environment)
    for name, prepare in _limits().items():
        yield Trial("surroundings", name, lambda _: world.train(), "either", prepare_process=prepare)
    for arguments in (["recipes"], ["--help"], ["--version"], ["train", "--help"], ["nonsense"], ["train"], [""]):
        yield Trial("surroundings", f"ASCII alone: {' '.join(arguments)}", _said(arguments), prepare_process=_ascii)
        yield Trial("surroundings", f"output full: {' '.join(arguments)}", _said(arguments), prepare_process=_full)


def _said(arguments: list[str]) -> Callable[[Path], list[str]]:
    return lambda _: arguments


def _variables() -> dict[str, tuple[dict[str, str | None], Expected]]:
    sizes = ("inf", "nan", "-1", "-inf", "1e400", "x", "1,5", "0x10", "9" * 400)
    wrong: dict[str, tuple[dict[str, str | None], Expected]] = {
        f"OPENCSE_CACHE_GIB={size[:20]}": ({"OPENCSE_CACHE_GIB": size}, "clear") for size in sizes
    }
    right: dict[str, tuple[dict[str, str | None], Expected]] = {
        "OPENCSE_CACHE_GIB=0": ({"OPENCSE_CACHE_GIB": "0"}, "works"),
        "OPENCSE_CACHE_GIB empty": ({"OPENCSE_CACHE_GIB": ""}, "works"),
        "no HOME": ({"HOME": None, "OPENCSE_CACHE": None}, "works"),
        "HOME nowhere": ({"HOME": "/nowhere/at/all", "OPENCSE_CACHE": None}, "either"),
        "HOME in /proc": ({"HOME": "/proc", "OPENCSE_CACHE": None}, "clear"),
        "no PATH": ({"PATH": None}, "works"),
        "C locale": ({"LC_ALL": "C", "LANG": "C"}, "works"),
        "unknown locale": ({"LC_ALL": "xx_YY.Magic"}, "works"),
        "no terminal": ({"TERM": None}, "works"),
        "dumb terminal": ({"TERM": "dumb"}, "works"),
        "0 columns": ({"COLUMNS": "0"}, "works"),
        "columns a word": ({"COLUMNS": "many"}, "works"),
        "OPENCSE_DATA nowhere": ({"OPENCSE_DATA": "/nowhere"}, "clear"),
        "RANK a word": ({"RANK": "first"}, "either"),
    }
    return wrong | right


def _limits() -> dict[str, Callable[[], None]]:
    def files(count: int) -> Callable[[], None]:
        return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))

    def memory(more: int) -> Callable[[], None]:
        def limit() -> None:
            used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
            resource.setrlimit(resource.RLIMIT_AS, (used + more, used + more))

        return limit

    return {
        **{f"{count} file handles": files(count) for count in (8, 12, 16, 24, 64)},
        **{f"{more >> 20} MiB more memory": memory(more) for more in (2**24, 2**26, 2**27, 2**28)},
        "umask 777": lambda: os.umask(0o777) and None,
    }


def _ascii() -> None:
    import sys

    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(encoding="ascii", errors="strict")  # type: ignore[union-attr]


def _full() -> None:
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
