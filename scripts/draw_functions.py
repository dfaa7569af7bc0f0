"""Draw functions of the package at random, to be read and judged.

    python scripts/draw_functions.py [--seed N] [--count N] [--text]

The same seed draws the same functions, as long as the code does not change. Questions for each: Why
is it here? Is its name right? Is its docstring true and needed? Could it go?
"""

from __future__ import annotations

import argparse
import ast
import random
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[1]
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


class Function(NamedTuple):
    """A function of the package, sorted by file and line."""

    path: str
    first: int
    last: int
    name: str


def all_functions(folder: Path) -> list[Function]:
    """Return all functions and methods below a folder, those inside others included."""
    functions = []
    for path in folder.rglob("*.py"):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, FUNCTIONS):
                place = path.relative_to(ROOT).as_posix()
                functions.append(Function(place, node.lineno, node.end_lineno or 0, node.name))
    return sorted(functions)


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw functions of the package at random.")
    parser.add_argument("--seed", type=int, default=11)
    parser.add_argument("--count", type=int, default=25)
    parser.add_argument("--text", action="store_true", help="print their code, too")
    arguments = parser.parse_args()
    functions = all_functions(ROOT / "src" / "opencse")
    for function in random.Random(arguments.seed).sample(functions, arguments.count):
        print(f"{function.path}:{function.first} {function.name}")
        if arguments.text:
            lines = (ROOT / function.path).read_text(encoding="utf-8").split("\n")
            print("\n".join(lines[function.first - 1 : function.last]), end="\n\n")


if __name__ == "__main__":
    main()
