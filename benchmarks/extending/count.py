"""Count lines and files of the seven jobs of someone who extends opencse.

    python benchmarks/extending/count.py   # writes benchmarks/results/extending.csv

A line counts unless it is blank, a comment or part of a docstring. Of a notebook, the lines of its
code cells count, without the one that installs opencse. The earlier counts are of the same jobs
before losses, views, tasks and callbacks could come from outside the package; they were made by
hand and are part of this script.
"""

from __future__ import annotations

import ast
import csv
import json
from pathlib import Path

ROOT = Path(__file__).parents[2]
OUT = ROOT / "benchmarks" / "results" / "extending.csv"

JOBS = (
    # job, files now, lines and files before, the same with sentence-transformers
    ("a loss outside the library", ["examples/new_loss.py"], (65, 1), "peer_loss.py"),
    ("a text view", ["examples/text_view.py"], (81, 3), ""),
    ("a loss with parameters", ["examples/loss_with_parameters.py"], (114, 3), ""),
    ("a task of your own", ["examples/custom_task.py"], (75, 6), "peer_task.py"),
    (
        "two losses, in a loop and in a trainer",
        ["examples/two_losses.py"],
        (59, 2),
        "peer_two_losses.py",
    ),
    ("other backbones", ["examples/backbones.py"], (26, 1), ""),
    (
        "a notebook, now with three plots",
        ["examples/notebooks/debias_and_rerank.ipynb"],
        (35, 1),
        "",
    ),
)


def code_lines(path: Path) -> int:
    """Return the number of lines of a script or notebook without blanks, comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
        sources = ["".join(cell["source"]) for cell in cells]
        text = "\n".join(source for source in sources if "%pip" not in source)
    documented = docstring_lines(text)
    count = 0
    for number, line in enumerate(text.splitlines(), 1):
        code = line.strip()
        if code and not code.startswith("#") and number not in documented:
            count += 1
    return count


def docstring_lines(text: str) -> set[int]:
    """Return the numbers of the lines of docstrings."""
    found: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) or not body:
            continue
        if ast.get_docstring(node) is not None:
            found.update(range(body[0].lineno, body[0].end_lineno + 1))
    return found


def table() -> list[list[str]]:
    """Return the header and a row for each job."""
    rows = [["job", "lines before", "files", "lines now", "files", "with sentence-transformers"]]
    for job, files, (lines, touched), peer in JOBS:
        now = sum(code_lines(ROOT / file) for file in files)
        other = str(code_lines(Path(__file__).parent / peer)) if peer else "–"
        rows.append([job, str(lines), str(touched), str(now), str(len(files)), other])
    return rows


if __name__ == "__main__":
    with OUT.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(table())
    print(OUT.read_text(encoding="utf-8"))
