"""Speed of a training step beside other jobs, by how the threads of OpenMP wait for each other.

    python benchmarks/training/busy_machine.py [--rounds 3] [--seconds 20] [--jobs 0 1]

A layer of MiniLM's shape (16 texts of 24 tokens, forward and backward) on two threads, in a process
of its own for each setting, in turn, alone and beside so many processes that do nothing but count.
Medians of steps per second, and of processor seconds per step (all threads; waiting in a loop
counts, waiting asleep does not). PyTorch's builds for CPUs carry libgomp, which reads these
variables once, when PyTorch is imported; opencse's command line sets the last one.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time

WAITING = {
    "default": {},
    "10,000 spins": {"GOMP_SPINCOUNT": "10000"},
    "passive": {"OMP_WAIT_POLICY": "PASSIVE"},
}
COUNT = "while True: pass"


def one(seconds: float) -> None:
    """Print steps per second and processor seconds per step."""
    import torch

    torch.set_num_threads(2)
    layer = torch.nn.TransformerEncoderLayer(384, 12, 1536, batch_first=True)
    texts = torch.randn(16, 24, 384)
    layer(texts).sum().backward()
    steps, began, before = 0, time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    while time.perf_counter() - began < seconds:
        layer(texts).sum().backward()
        steps += 1
    clock, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(json.dumps([steps / clock, used / steps]))


def measured(waiting: str, seconds: float, jobs: int) -> list[float]:
    """Steps per second and processor seconds per step, beside so many jobs."""
    others = [subprocess.Popen([sys.executable, "-c", COUNT]) for _ in range(jobs)]
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("GOMP_", "OMP_", "KMP_"))}
    command = [sys.executable, __file__, "--one", "--seconds", str(seconds)]
    try:
        done = subprocess.run(
            command, stdout=subprocess.PIPE, text=True, check=True, env=clean | WAITING[waiting]
        )
    finally:
        for other in others:
            other.kill()
            other.wait()
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--jobs", type=int, nargs="+", default=[0, 1])
    parser.add_argument("--only", nargs="*", default=list(WAITING), choices=WAITING)
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        return one(arguments.seconds)
    cells = [(waiting, jobs) for jobs in arguments.jobs for waiting in arguments.only]
    found = {cell: [] for cell in cells}
    for _ in range(arguments.rounds):
        for waiting, jobs in cells:
            found[waiting, jobs].append(measured(waiting, arguments.seconds, jobs))
    print("| other jobs | threads wait | steps/s | processor s a step |\n|---:|---|---:|---:|")
    for (waiting, jobs), rounds in found.items():
        speed, used = (statistics.median(column) for column in zip(*rounds, strict=True))
        print(f"| {jobs} | {waiting} | {speed:.2f} | {used:.3f} |")
    return None


if __name__ == "__main__":
    main()
