"""`python -m tests.trials.ray_kills`: kill the driver, a worker or a node of a Ray cluster while it builds views.

Needs the extra `ray`. Each trial has a cluster of two nodes of its own, on this machine.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from tests.tiny import WORDS
from tests.trials.processes import free_port, result

WAYS = ("SIGKILL, driver", "SIGKILL, worker", "SIGKILL, node")
SECONDS = 400
"""A build that takes longer hangs."""
DRIVER = """
import sys
from opencse.engines import Local, Ray
from opencse.views import Deletion, WordRepetition, build_views
corpus, out, address = sys.argv[1:]
engine = Ray(address=address, processes=2) if address else Local(processes=1)
build_views(corpus, {"shorter": Deletion(), "longer": WordRepetition()}, out, engine=engine, rows_per_part=1)
"""


def main() -> int:
    """Run so many kills; the exit code is 1 where a build was lost, hung or ended with other bytes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--table", type=Path, help="write the table here, as CSV")
    options = parser.parse_args()
    rng, counts = random.Random(options.seed), {way: Counter[str]() for way in WAYS}
    with tempfile.TemporaryDirectory(prefix="opencse-ray-") as name:
        root = Path(name)
        corpus = _corpus(root, rng)
        assert _finished(_driver(corpus, root / "expected", "")) == 0
        for number in range(options.kills):
            way = WAYS[number % len(WAYS)]
            outcome = _killed(corpus, root / str(number), way, result(root / "expected"))
            counts[way][outcome] += 1
            print(f"{number}: {way}: {outcome}", flush=True)
            if outcome in OUTCOMES[2:]:
                print((root / str(number) / "words").read_text(errors="replace")[-1500:], flush=True)
    if options.table:
        with options.table.open("w", encoding="utf-8", newline="") as file:
            rows = [[w, str(c.total()), *(str(c[o]) for o in OUTCOMES)] for w, c in counts.items()]
            csv.writer(file).writerows([["way", "kills", *OUTCOMES], *rows])
    return int(any(count[outcome] for count in counts.values() for outcome in OUTCOMES[2:]))


OUTCOMES = ("too late", "went on", "lost", "differs", "hung")


def _corpus(root: Path, rng: random.Random) -> Path:
    from opencse.views.builder import UNIT

    path = root / "corpus.txt"
    lines = (" ".join(rng.choices(WORDS, k=rng.randint(2, 14))) for _ in range(8 * UNIT))
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def _driver(corpus: Path, work: Path, address: str) -> subprocess.Popen[bytes]:
    work.mkdir(exist_ok=True)
    command = [sys.executable, "-c", DRIVER, str(corpus), str(work / "out"), address]
    with (work / "words").open("ab") as words:
        return subprocess.Popen(command, stdout=words, stderr=words, start_new_session=True)


def _finished(process: subprocess.Popen[bytes]) -> int | None:
    """The exit code, or None where the time ran out."""
    try:
        return process.wait(SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        return None


def _node(work: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start a node of a cluster, with one core, in a session of its own."""
    command = [sys.executable, "-m", "ray.scripts.scripts", "start", "--block", "--num-cpus=1", *options]
    environment = {**os.environ, "RAY_worker_niceness": "0", "RAY_raylet_start_wait_time_s": str(SECONDS)}
    with (work / "nodes").open("ab") as words:
        return subprocess.Popen(command, stdout=words, stderr=words, start_new_session=True, env=environment)


def _killed(corpus: Path, work: Path, way: str, expected: bytes) -> str:
    """Build on a fresh cluster, kill a part of it once the first file is written, and build again if it stopped."""
    work.mkdir()
    port = free_port()
    head = _node(work, "--head", f"--port={port}", "--include-dashboard=false")
    _wait_until(lambda: _listens(port))
    nodes = [head, _node(work, f"--address=127.0.0.1:{port}")]
    try:
        _wait_until(lambda: (work / "nodes").read_text(errors="replace").count("Ray runtime started") == len(nodes))
        driver = _driver(corpus, work, f"127.0.0.1:{port}")
        end = time.monotonic() + SECONDS
        while not list((work / "out").glob("part-*")) and driver.poll() is None and time.monotonic() < end:
            time.sleep(0.01)
        if driver.poll() is not None:
            return "too late" if result(work) == expected else "lost"
        if not _kill(way, driver, nodes):
            return "too late"
        status = _finished(driver)
        if status is None:
            return "hung"
        if status:
            again = _finished(_driver(corpus, work, ""))
            if again is None:
                return "hung"
            if again:
                return "lost"
        return "went on" if result(work) == expected else "differs"
    finally:
        for node in nodes:
            _end(node)


def _kill(way: str, driver: subprocess.Popen[bytes], nodes: list[subprocess.Popen[bytes]]) -> bool:
    """Kill a part of the cluster; whether there was one."""
    import psutil

    if way.endswith("driver"):
        driver.kill()
        return True
    if way.endswith("node"):
        _end(nodes[1])
        return True
    for node in nodes:
        for process in psutil.Process(node.pid).children(recursive=True):
            if "ray::" in " ".join(process.cmdline()) and "IDLE" not in " ".join(process.cmdline()):
                process.kill()
                return True
    return False


def _end(node: subprocess.Popen[bytes]) -> None:
    """Kill a node with all its processes."""
    import psutil

    if node.poll() is None:
        for process in psutil.Process(node.pid).children(recursive=True):
            process.kill()
        os.killpg(node.pid, signal.SIGKILL)
    node.wait()


def _listens(port: int) -> bool:
    with socket.socket() as client:
        return client.connect_ex(("127.0.0.1", port)) == 0


def _wait_until(done: Callable[[], bool]) -> None:
    end = time.monotonic() + SECONDS
    while not done() and time.monotonic() < end:
        time.sleep(0.5)


if __name__ == "__main__":
    sys.exit(main())
