"""How soon a mistake in the options of a command is told, and what a command imports before its work.

    python benchmarks/training/start_time.py [--rounds 3]

Each line is the least of several processes: seconds of the clock, and of the processor (user and
system), which a busy machine lengthens less. The last lines are not mistakes: the imports of three
commands that go on to work.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RECIPE = 'extends = "simcse"\n[[losses]]\nkind = "contrastiv"\n'
COMMANDS = {
    "--help": ["--help"],
    "the name of a recipe": ["run", "simsce", "demo", "-o", "out"],
    "the kind of a loss": ["run", "recipe.toml", "demo", "-o", "out"],
    "a setting": [
        "train",
        "simcse",
        "demo",
        "--backbone",
        "minilm",
        "-o",
        "out",
        "--set",
        "training.bach_size=64",
    ],
    "the path of a corpus": ["run", "simcse", "corpsu.txt", "-o", "out"],
    "the folder of a model": ["evaluate", "./modle", "--tasks", "guard"],
}
IMPORTS = ("opencse", "opencse.commands.run", "opencse.commands.evaluate")


def seconds(command: list[str], folder: str, code: int, rounds: int) -> tuple[float, float]:
    """Return the least seconds of the clock and of the processor that a command takes to end with an exit code."""
    found = []
    for _ in range(rounds):
        used, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, env={**os.environ, "COLUMNS": "80"}
        )
        clock, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
        assert done.returncode == code, done.stderr
        found.append((clock, after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime))
    return min(clock for clock, _ in found), min(processor for _, processor in found)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    print(f"{'':34} {'clock':>6} {'processor':>9}")
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "recipe.toml").write_text(RECIPE, encoding="utf-8")
        for name, arguments in COMMANDS.items():
            command = [sys.executable, "-m", "opencse", *arguments]
            clock, processor = seconds(command, folder, 0 if name == "--help" else 2, rounds)
            print(f"{name:34} {clock:6.2f} {processor:9.2f}")
        for module in IMPORTS:
            clock, processor = seconds(
                [sys.executable, "-c", f"import {module}"], folder, 0, rounds
            )
            print(f"{'import ' + module:34} {clock:6.2f} {processor:9.2f}")


if __name__ == "__main__":
    main()
