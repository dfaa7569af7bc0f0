"""What `opencse run debias` costs: minutes, processor minutes and memory of whole commands, one after another.

    python benchmarks/debias/cost.py -o benchmarks/results/debias-cost.csv "NAME=ARGUMENTS"...

ARGUMENTS are those of the command, such as "TEXTS --backbone minilm --seed 1". Each command is a
process of its own with an empty cache; its model is thrown away. Lines of NAMEs that the file has
already are written again, others stay.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HEAD = ("", "minutes", "processor minutes", "peak GiB", "training steps")


def measured(arguments: str) -> tuple[str, ...]:
    """Run a command, and return the cells of its line."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        command = [
            sys.executable,
            "-m",
            "opencse",
            "run",
            "debias",
            *shlex.split(arguments),
            "-o",
            str(out),
            "-q",
        ]
        begun = time.perf_counter()
        process = subprocess.Popen(command, env=os.environ | {"OPENCSE_CACHE": f"{folder}/cache"})
        _, status, used = os.wait4(process.pid, 0)  # of this child alone, with its own children
        minutes = (time.perf_counter() - begun) / 60
        if status:
            sys.exit(f"{shlex.join(command)} failed")
        metrics = out / "metrics.jsonl"
        lines = metrics.read_text(encoding="utf-8").splitlines() if metrics.is_file() else []
    steps = max((json.loads(line)["step"] for line in lines), default="–")
    processor = (used.ru_utime + used.ru_stime) / 60
    return f"{minutes:.1f}", f"{processor:.1f}", f"{used.ru_maxrss / 2**20:.1f}", str(steps)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("commands", nargs="+", metavar="NAME=ARGUMENTS")
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args()
    rows: dict[str, tuple[str, ...]] = {}
    if options.out.is_file():
        with options.out.open(encoding="utf-8", newline="") as file:
            rows = {name: tuple(cells) for name, *cells in list(csv.reader(file))[1:]}
    for name, arguments in (command.split("=", 1) for command in options.commands):
        rows[name] = measured(arguments)
        with options.out.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows([HEAD, *([name, *cells] for name, cells in rows.items())])


if __name__ == "__main__":
    main()
