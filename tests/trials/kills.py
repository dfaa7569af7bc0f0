"""`python -m tests.trials.kills`: kill commands at random moments, go on, and compare with an uninterrupted run."""

from __future__ import annotations

import argparse
import csv
import os
import random
import resource
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")
SIGNALS = {"SIGKILL": signal.SIGKILL, "SIGTERM": signal.SIGTERM, "SIGINT": signal.SIGINT}
WAYS = (*SIGNALS, "file size limit")
"""The last stands for a full disk: writing fails in the middle of a file."""


OUTCOMES = ("too late", "went on", "lost", "differs")
"""Of a kill: it came too late; the command went on and ended as without it; could not go on; ended otherwise."""


def main() -> int:
    """Run so many kills, spread over commands and ways; the exit code is 1 where a result was lost or differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--table", type=Path, help="write the table here, as CSV")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="opencse-kills-") as root:
        rows, failed = _run(Path(root), options.kills, random.Random(options.seed))
    for row in rows:
        print(f"{row[0]:<12}{row[1]:<18}" + "".join(f"{cell:>10}" for cell in row[2:]))
    if options.table:
        with options.table.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)
    return int(failed)


def _run(root: Path, kills: int, rng: random.Random) -> tuple[list[list[str]], bool]:
    """The table of what came of the kills, and whether one lost or changed a result."""
    import torch

    torch.set_num_threads(1)  # a pool of threads doesn't survive the fork
    from tests.trials.world import make_world

    commands = _commands(make_world(root / "world"))
    reference: dict[str, tuple[bytes, float]] = {}
    for name, arguments in commands.items():
        for attempt in ("first", "second"):  # the first takes longer: files are not in memory yet
            work, started = root / f"{name}-{attempt}", time.monotonic()
            assert _command(work, arguments) == 0, f"{name} does not work at all"
            reference[name] = _result(work), time.monotonic() - started
    counts: dict[tuple[str, str], Counter[str]] = {}
    for number in range(kills):
        name, way = list(commands)[number % len(commands)], WAYS[number // len(commands) % len(WAYS)]
        result, seconds = reference[name]
        outcome = _killed(root / f"{number:04d}", commands[name], way, rng, seconds, result)
        counts.setdefault((name, way), Counter())[outcome] += 1
        if outcome in ("lost", "differs"):
            print(f"{outcome.upper()}  {number}: {name}, {way}", flush=True)
    rows = [["command", "way", "kills", *OUTCOMES]]
    for (name, way), count in sorted(counts.items()):
        rows.append([name, way, str(count.total()), *(str(count[outcome]) for outcome in OUTCOMES)])
    return rows, any(count["lost"] or count["differs"] for count in counts.values())


def _commands(world: object) -> dict[str, list[str]]:
    from tests.trials.corpora import pretraining
    from tests.trials.folders import _words
    from tests.trials.world import World

    assert isinstance(world, World)
    where = [str(world.corpus), "--backbone", str(world.model), "-o", "out"]
    pairs = ["--pairs", str(world.pairs)]
    return {
        "build": ["build", str(_words(world)), str(world.corpus), "--workers", "1", "-o", "out"],
        "train": ["train", str(world.recipe), *where, "--set", "training.epochs=8"],
        "run": ["run", str(_words(world)), *where, *pairs],
        "pretrain": [*pretraining(world.corpus), "-o", "out", "--set", "training.checkpoint_every=1"],
        "evaluate": ["evaluate", str(world.encoder), *pairs, "--format", "json", "-o", "out/scores.json"],
    }


def _killed(work: Path, arguments: list[str], way: str, rng: random.Random, seconds: float, result: bytes) -> str:
    limit = rng.choice((2_000, 20_000, 60_000, 100_000))
    child = _start(work, arguments, _limited(limit) if way == "file size limit" else lambda: None)
    if way in SIGNALS:
        time.sleep(rng.uniform(0.05, seconds))
        os.kill(child, SIGNALS[way])
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status == 0:
        return "too late" if _result(work) == result else "differs"
    for _ in range(3):
        begun = (work / "out" / "run.json").is_file() and arguments[0] in ("train", "run", "pretrain")
        again = [*arguments, *(["--resume"] if begun else _afresh(arguments[0], work))]
        if _command(work, again) == 0:
            return "went on" if _result(work) == result else "differs"
    return "lost"


def _afresh(command: str, work: Path) -> list[str]:
    """A run that was killed before its record was written has nothing to go on from."""
    return ["--overwrite"] if command in ("train", "run", "pretrain") and (work / "out").is_dir() else []


def _limited(size: int) -> Callable[[], None]:
    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


def _command(work: Path, arguments: list[str]) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(_start(work, arguments, lambda: None), 0)[1])


def _start(work: Path, arguments: list[str], prepare: Callable[[], None]) -> int:
    """Run a command in a child process, with a cache and an output folder of its own."""
    work.mkdir(exist_ok=True)
    child = os.fork()
    if child:
        return child
    code = 1
    try:
        os.chdir(work)
        os.environ["OPENCSE_CACHE"] = str(work / "cache")
        signal.signal(signal.SIGINT, signal.default_int_handler)  # shells start background processes without it
        for number in (1, 2):
            os.dup2(os.open(work / "words", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644), number)
        prepare()
        from opencse.cli.main import main as command_line

        sys.argv = ["opencse", *arguments]
        command_line()
        code = 0
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else 1
    finally:
        os._exit(code)


def _result(work: Path) -> bytes:
    """What a command is for: weights, views or scores, without times."""
    for pattern in ("out/model/model.safetensors", "out/part-*.parquet", "out/scores.json"):
        if found := sorted(work.glob(pattern)):
            content = b"".join(path.read_bytes() for path in found)
            return content if not pattern.endswith("json") else content.split(b'"seconds"')[0]
    return b""


if __name__ == "__main__":
    sys.exit(main())
