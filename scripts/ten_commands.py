"""Write what ten commands print, so that two versions of opencse can be compared.

    python scripts/ten_commands.py BEFORE --checkout ../other
    python scripts/ten_commands.py AFTER
    diff -r BEFORE AFTER

Each command runs in a process of its own, in a fresh folder and with a fresh cache. Its output goes
to a file of its name, with its exit code. Times, and the path of the folder, are replaced, because
they differ between any two runs.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
SHORT = ["--set", "training.max_steps=3", "--set", "training.batch_size=16"]
COMMANDS = {
    "recipes": ["recipes"],
    "recipes-show": ["recipes", "show", "osscse", "--family", "bert-base"],
    "train": ["train", "simcse", "demo", "--backbone", "mini-mlm", "-o", "first", *SHORT],
    "train-missing-column": ["train", "osscse", "plain.csv", "--backbone", "mini-mlm", "-o", "no"],
    "run": ["run", "simcse", "demo", "--backbone", "mini-mlm", "-o", "second", "--quick"],
    "run-without-text": ["run", "debias", "--backbone", "minilm", "-o", "block"],
    "build": ["build", "osscse", "plain.csv", "views", "--only", "negation", "--stats"],
    "evaluate": ["evaluate", "minilm", "--pairs", "demo"],
    "check": ["check", "minilm", "--texts", "demo", "--minutes", "0.1"],
    "compare": ["compare", "first", "second", "--pairs", "demo"],
}
"""The commands by name. Later ones use what earlier ones wrote."""
# Numbers with a unit of time, and the text of a progress bar.
VARIES = (
    (re.compile(r"\b\d[\d,.]*(e-?\d+)? ?(s|ms|min|minutes|seconds)\b"), "TIME"),
    (re.compile(r"[^\n]*\r"), ""),
)


def plain_table() -> str:
    """Return a CSV file without the columns that OssCSE needs."""
    subjects = ("A man", "The old woman", "My neighbour", "The young driver")
    verbs = ("is closing", "opens", "has sold", "will not repair")
    things = ("the red door", "a small boat", "his first engine", "the large window")
    lines = [f"{who} {does} {what}." for who in subjects for does in verbs for what in things]
    return "text\n" + "\n".join(lines) + "\n"


def output_of(arguments: list[str], checkout: Path, folder: Path) -> str:
    """Run a command, and return its exit code and what it printed."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(checkout / "src"),
        "OPENCSE_CACHE": str(folder / "cache"),
        "COLUMNS": "160",
    }
    done = subprocess.run(
        [sys.executable, "-m", "opencse", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    text = f"exit code {done.returncode}\n--- output\n{done.stdout}--- notes\n{done.stderr}"
    text = text.replace(str(folder), "FOLDER").replace(str(checkout), "CHECKOUT")
    for pattern, replacement in VARIES:
        text = pattern.sub(replacement, text)
    return "\n".join(line.rstrip() for line in text.splitlines()) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Write what ten commands print.")
    parser.add_argument("out", type=Path)
    parser.add_argument("--checkout", type=Path, default=HERE)
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place).resolve()
        (folder / "plain.csv").write_text(plain_table(), encoding="utf-8")
        for name, arguments in COMMANDS.items():
            text = output_of(arguments, options.checkout.resolve(), folder)
            (options.out / f"{name}.txt").write_text(text, encoding="utf-8")
            print(name, flush=True)


if __name__ == "__main__":
    main()
