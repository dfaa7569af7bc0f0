"""`python -m tests.trials.kills`: kill commands at random moments, go on, and compare with an uninterrupted run."""

from __future__ import annotations

import argparse
import csv
import math
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
os.environ.setdefault("OMP_NUM_THREADS", "1")

from tests.trials.processes import (
    SIGNALS,
    ends_clearly,
    free_port,
    limit_files,
    limit_memory,
    of_two,
    result,
    start,
    wait_for,
)
from tests.trials.world import World, make_world

SECONDS = 900
"""A command that takes longer hangs; with two processes, one whose other half is gone."""
OUTCOMES = ("too late", "went on", "unclear", "lost", "differs", "hung")
"""Of a kill: it came too late; the command went on and ended as without it; it did, but had said no clear line at a
limit; it could not go on; it ended otherwise; it did not end."""
FAILED = OUTCOMES[2:]
LIMITS = ("file size limit", "memory limit")
BESIDE = "next to another"


@dataclass(frozen=True)
class Command:
    """A command by its arguments, with the output folder `out`; how long it takes, and what it leaves."""

    name: str
    arguments: list[str]
    seconds: float = 0.0
    result: bytes = b""
    processes: int = 1

    @property
    def ways(self) -> list[str]:
        """The ways in which it is killed."""
        if self.processes > 1:
            return [
                f"{signal}, process {rank}" for signal in SIGNALS for rank in range(self.processes)
            ]
        return [*SIGNALS, *LIMITS, *(f"{signal} {BESIDE}" for signal in SIGNALS)]


def main() -> int:
    """Run so many kills, spread over commands and ways; the exit code is 1 where something went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--match", default="", help="only where `command, way` has this regular expression"
    )
    parser.add_argument("--table", type=Path, help="write the table here, as CSV")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="opencse-kills-") as root:
        return _run(Path(root), options)


def _run(root: Path, options: argparse.Namespace) -> int:
    """Kill command after command, and write the table; 1 where a kill did harm."""
    import torch

    torch.set_num_threads(1)  # a pool of threads doesn't survive the fork
    rng = random.Random(options.seed)
    chosen = _chosen(_commands(make_world(root / "world")), options.match)
    known = {
        name: _measured(root, command) for name, command in {c.name: c for c, _ in chosen}.items()
    }
    counts: dict[tuple[str, str], Counter[str]] = {}
    for number in range(options.kills):
        command, way = chosen[number % len(chosen)]
        outcome = _outcome(root / f"{number:04d}", known[command.name], way, rng)
        counts.setdefault((command.name, way), Counter())[outcome] += 1
        if outcome in FAILED:
            print(
                f"{outcome.upper()}  {number}: {command.name}, {way}\n{_said(root / f'{number:04d}')}",
                flush=True,
            )
    rows = [["command", "way", "kills", *OUTCOMES]]
    for (name, way), count in sorted(counts.items()):
        rows.append([name, way, str(count.total()), *(str(count[outcome]) for outcome in OUTCOMES)])
    for row in rows:
        print(f"{row[0]:<20}{row[1]:<26}" + "".join(f"{cell:>10}" for cell in row[2:]))
    if options.table:
        with options.table.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)
    return int(any(count[outcome] for count in counts.values() for outcome in FAILED))


def _chosen(commands: Sequence[Command], match: str) -> list[tuple[Command, str]]:
    """The pairs of command and way, way by way, so that few kills too are spread over all commands."""
    most = max(len(command.ways) for command in commands)
    pairs = [(c, c.ways[i]) for i in range(most) for c in commands if i < len(c.ways)]
    return [(command, way) for command, way in pairs if re.search(match, f"{command.name}, {way}")]


def _commands(world: World) -> list[Command]:
    where = [str(world.corpus), "--backbone", str(world.model), "-o", "out"]
    pairs = ["--pairs", str(world.pairs)]
    train = ["train", str(world.recipe), *where, "--set", "training.epochs=8"]
    return [
        Command(
            "build",
            ["build", str(world.building), str(world.corpus), "--workers", "1", "-o", "out"],
        ),
        Command("train", train),
        Command("run", ["run", str(world.building), *where, *pairs]),
        Command("evaluate", ["evaluate", str(world.encoder), *pairs, "-o", "out/scores.json"]),
        Command("train, 2 processes", train, processes=2),
    ]


def _measured(root: Path, command: Command) -> Command:
    """The command with its result and its time, from two runs: the first takes longer, as files are not in memory."""
    seconds, left = 0.0, b""
    for attempt in ("first", "second"):
        work, started = root / f"{command.name}-{attempt}", time.monotonic()
        statuses = _complete(work, command, command.arguments)
        assert not any(statuses), f"{command.name} does not work at all: {_said(work)}"
        seconds, left = time.monotonic() - started, result(work)
    return Command(command.name, command.arguments, seconds, left, command.processes)


def _complete(
    work: Path, command: Command, arguments: list[str], cache: Path | None = None
) -> list[int | None]:
    """Run all processes of a command to their ends, and return their exit codes; None for one that hung."""
    return [wait_for(child, SECONDS) for child in _processes(work, command, arguments, cache)]


def _processes(
    work: Path, command: Command, arguments: list[str], cache: Path | None = None
) -> list[int]:
    if command.processes == 1:
        return [start(work, arguments, cache=cache)]
    port = free_port()
    ranks = range(command.processes)
    return [
        start(work, arguments, environment=of_two(rank, port), words=f"words-{rank}")
        for rank in ranks
    ]


def _outcome(work: Path, command: Command, way: str, rng: random.Random) -> str:
    if way in LIMITS:
        return _limited(work, command, way, rng)
    if way.endswith(BESIDE):
        return _beside_another(work, command, SIGNALS[way.split()[0]], rng)
    rank = int(way[-1]) if command.processes > 1 else 0
    children = _processes(work, command, command.arguments)
    time.sleep(rng.uniform(0.05, command.seconds))
    os.kill(children[rank], SIGNALS[way.partition(",")[0]])
    statuses = [wait_for(child, SECONDS) for child in children]
    if None in statuses:
        return "hung"
    clear = all(
        ends_clearly(work / f"words-{i}")
        for i in range(command.processes)
        if i != rank and statuses[i]
    )
    return _gone_on(work, command, statuses, clear=clear)


def _limited(work: Path, command: Command, way: str, rng: random.Random) -> str:
    """Run a command with too little disk or memory, then without the limit."""
    if way == "file size limit":
        limit = limit_files(rng.choice((2_000, 20_000, 60_000, 100_000)))
    else:
        limit = limit_memory(int(math.exp(rng.uniform(math.log(2**14), math.log(2**26)))))
    status = wait_for(start(work, command.arguments, limit), SECONDS)
    return (
        "hung"
        if status is None
        else _gone_on(work, command, [status], clear=ends_clearly(work / "words"))
    )


def _beside_another(
    work: Path, command: Command, number: signal.Signals, rng: random.Random
) -> str:
    """Kill one of two commands that share a cache: the other must end as alone, and the killed one go on."""
    cache = work.with_name(f"{work.name}-cache")
    other = work.with_name(f"{work.name}-other")
    children = [start(folder, command.arguments, cache=cache) for folder in (work, other)]
    time.sleep(rng.uniform(0.05, 1.5 * command.seconds))
    os.kill(children[0], number)
    statuses = [wait_for(child, SECONDS) for child in children]
    if None in statuses:
        return "hung"
    if statuses[1] or result(other) != command.result:
        return "lost" if statuses[1] else "differs"
    return _gone_on(work, command, statuses[:1], clear=True, cache=cache)


def _gone_on(
    work: Path,
    command: Command,
    statuses: Sequence[int | None],
    *,
    clear: bool,
    cache: Path | None = None,
) -> str:
    """Start a killed command again, and compare what it leaves."""
    if not any(statuses):
        return "too late" if result(work) == command.result else "differs"
    for _ in range(3):
        again = []
        if command.arguments[0] in ("train", "run") and (work / "out").is_dir():
            # One that was killed before its record was written has nothing to go on from.
            again = ["--resume" if (work / "out" / "run.json").is_file() else "--overwrite"]
        ends = _complete(work, command, [*command.arguments, *again], cache)
        if None in ends:
            return "hung"
        if not any(ends):
            same = result(work) == command.result
            return "differs" if not same else "went on" if clear else "unclear"
    return "lost"


def _said(work: Path) -> str:
    """The last lines of what a command said."""
    texts = [
        path.read_text(encoding="utf-8", errors="replace")[-1500:]
        for path in sorted(work.glob("words*"))
    ]
    return "\n---\n".join(texts)


if __name__ == "__main__":
    sys.exit(main())
