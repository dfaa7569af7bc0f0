"""Run folders of one recipe with several seeds."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from opencse.foundation.errors import OpencseError
from opencse.foundation.numbers import LARGEST_SEED

MAX_RUNS = 1000
"""Maximum number of runs that one command starts."""


def parse_seeds(text: str) -> list[int]:
    """Return the seeds of a list such as `1,2,3` or `1-5`.

    Raises:
        OpencseError: It is neither, or names a seed twice.
    """
    seeds: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not _is_seed(first) or (dash and not _is_seed(last)):
            raise OpencseError(f"--seeds {text}: {part.strip()!r} is not a seed", "Write them as 1,2,3 or 1-5.")
        chosen = range(int(first), int(last if dash else first) + 1)
        if len(seeds) + len(chosen) > MAX_RUNS:
            raise OpencseError(f"--seeds {text}: more than {MAX_RUNS} runs", "Name fewer.")
        seeds += chosen
    if not seeds or len(set(seeds)) < len(seeds):
        raise OpencseError(f"--seeds {text}: names no seed, or one twice", "Write them as 1,2,3 or 1-5.")
    return seeds


def _is_seed(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) <= LARGEST_SEED


def seed_folders(out: str | Path, seeds: Sequence[int]) -> dict[int, Path]:
    """Return the run folder of each seed, `OUT/seed-1` and so on, where `opencse compare OUT` finds them.

    Raises:
        OpencseError: `out` is itself a run, or a seed is named twice.
    """
    out = Path(out)
    if (out / "run.json").is_file():
        raise OpencseError(f"{out}: is itself a run, not a folder of runs", "Choose another output folder.")
    if len(set(seeds)) < len(seeds):
        raise OpencseError("a seed is named twice", "Name each seed once.")
    return {seed: out / f"seed-{seed}" for seed in seeds}
