"""Training speed beside another job, by how the threads of OpenMP wait for each other.

    python benchmarks/training/busy_machine.py [--rounds 3] [--steps 20] [--jobs 0 1]

Each contestant trains SimCSE on the demo's sentences in a process of its own with two threads, in turn, alone and
beside so many processes that do nothing but count. Medians of steps per second, and of processor seconds per step (all
threads; waiting in a loop counts, waiting asleep does not). PyTorch's builds for CPUs carry libgomp, which reads these
variables once, when PyTorch is imported.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

WARM, BATCH, THREADS = 4, 16, 2
WAITING = {
    "active (libgomp's default)": {},
    "1,000 spins": {"GOMP_SPINCOUNT": "1000"},
    "10,000 spins": {"GOMP_SPINCOUNT": "10000"},
    "passive": {"OMP_WAIT_POLICY": "PASSIVE"},
}
COUNT = "while True: pass"


def one(steps: int) -> None:
    """Train, and print the seconds of the clock and of the processor after the first steps."""
    import opencse
    from opencse.training.loop import TrainingLoop

    stamps, original = [], TrainingLoop._step

    def timed(loop: TrainingLoop) -> None:
        original(loop)
        used = resource.getrusage(resource.RUSAGE_SELF)
        stamps.append((time.perf_counter(), used.ru_utime + used.ru_stime))

    TrainingLoop._step = timed
    settings = [f"training.batch_size={BATCH}", f"training.max_steps={steps}", "training.precision=fp32"]
    with tempfile.TemporaryDirectory() as folder:
        opencse.train("simcse", "demo", backbone="minilm", out=Path(folder) / "out", overrides=settings, progress=False)
    (clock, used), (end, all_used) = stamps[WARM - 1], stamps[-1]
    print("RESULT " + json.dumps([(end - clock) / (steps - WARM), (all_used - used) / (steps - WARM)]))


def trained(waiting: str, steps: int, jobs: int) -> list[float]:
    """Seconds per step, of the clock and of the processor, beside so many jobs."""
    others = [subprocess.Popen([sys.executable, "-c", COUNT]) for _ in range(jobs)]
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("GOMP_", "OMP_", "KMP_"))}
    command = [sys.executable, __file__, "--one", "--steps", str(steps)]
    environment = clean | {"OMP_NUM_THREADS": str(THREADS)} | WAITING[waiting]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    finally:
        for other in others:
            other.kill()
            other.wait()
    found = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    return json.loads(found[0].removeprefix("RESULT ")) if found else sys.exit(done.stderr)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--jobs", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--only", nargs="*", default=list(WAITING), choices=WAITING)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        return one(arguments.steps)
    cells = [(waiting, jobs) for jobs in arguments.jobs for waiting in arguments.only]
    found = {cell: [] for cell in cells}
    for _ in range(arguments.rounds):
        for waiting, jobs in cells:
            found[waiting, jobs].append(trained(waiting, arguments.steps, jobs))
            print(f"{waiting}, {jobs} other jobs: {found[waiting, jobs][-1]}", file=sys.stderr, flush=True)
    print("| other jobs | threads wait | steps/s | processor s a step |\n|---:|---|---:|---:|")
    for (waiting, jobs), rounds in found.items():
        clock, used = (statistics.median(column) for column in zip(*rounds, strict=True))
        print(f"| {jobs} | {waiting} | {1 / clock:.2f} | {used:.2f} |")
    return None


if __name__ == "__main__":
    main()
