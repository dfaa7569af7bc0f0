"""Tables of results, made from the data in benchmarks/results.

    python docs/_site/tables.py           # say which tables of the pages differ from their data
    python docs/_site/tables.py --write   # write them again

A page marks the place with `<!-- table: NAME -->` and `<!-- end -->`. The data is NAME.csv, whose
cells are shown as they are, or single runs in a .jsonl file that tables.toml says how to show: runs
of one label become mean ± standard deviation.
"""

from __future__ import annotations

import csv
import json
import re
import statistics
import sys
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
RESULTS = ROOT / "benchmarks" / "results"
MARK = re.compile(r"(<!-- table: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def rows_of_csv(path: Path) -> list[list[str]]:
    """Return the cells of a table, its header first."""
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def shown(values: list[float | None], digits: int) -> str:
    """Return one figure, or mean ± standard deviation of several."""
    known = [value for value in values if value is not None]
    if not known:
        return "–"
    mean = f"{statistics.mean(known):.{digits}f}".replace("-", "−")
    return mean if len(known) == 1 else f"{mean} ± {statistics.stdev(known):.{digits}f}"


def value_at(run: dict[str, Any], path: list[str]) -> float | None:
    """Return the figure at a path of keys; a path that ends at a table of figures gives their mean."""
    found: Any = run
    for key in path:
        found = found.get(key) if isinstance(found, dict) else None
    return statistics.mean(found.values()) if isinstance(found, dict) else found


def rows_of_runs(tables: dict[str, Any], name: str) -> list[list[str]]:
    """Return the cells of a table over runs, as tables.toml defines it."""
    table = tables[name]
    lines = (RESULTS / table["file"]).read_text(encoding="utf-8").splitlines()
    runs = [
        run
        for run in map(json.loads, lines)
        if all(run.get(k) == v for k, v in table.get("where", {}).items())
    ]
    named: dict[str, list[dict[str, Any]]] = {}
    for run in runs:
        named.setdefault(run[table["label"]], []).append(run)
    labels = tables[table.get("rows-of", name)]["rows"]
    rows = [[table.get("title", ""), *(column[0] for column in table["columns"])]]
    for label, title in labels.items():
        figures = [
            shown([value_at(run, path) for run in named[label]], digits)
            for _, digits, *path in table["columns"]
        ]
        rows.append([title, *figures])
    return rows


def markdown(rows: list[list[str]]) -> str:
    """Return the cells as a Markdown table; columns of figures are set to the right."""
    header, *body = ([cell.replace("|", "\\|") for cell in row] for row in rows)
    figure = re.compile(r"^[-−+<>~×]?\d[\d.,]*( ?[%×sx])?( ± [\d.]+)?( \(.*\))?$|^[–]?$")
    right = [all(figure.match(row[i]) for row in body) for i in range(len(header))]
    rule = ["---:" if each else "---" for each in right]
    return "".join(f"| {' | '.join(row)} |\n" for row in [header, rule, *body])


def render(name: str) -> str:
    """Return the named table."""
    tables = tomllib.loads((RESULTS / "tables.toml").read_text(encoding="utf-8"))
    return markdown(
        rows_of_runs(tables, name) if name in tables else rows_of_csv(RESULTS / f"{name}.csv")
    )


def filled(text: str) -> str:
    """Return a page with its tables made again."""
    return MARK.sub(lambda match: match[1] + render(match[2]) + match[3], text)


def pages() -> list[Path]:
    """Return the pages that may hold tables."""
    return [
        ROOT / "README.md",
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "benchmarks").rglob("*.md")),
    ]


def main(write: bool) -> int:
    """Write the tables, or name the pages whose tables differ from their data."""
    stale = [
        page
        for page in pages()
        if filled(page.read_text(encoding="utf-8")) != page.read_text(encoding="utf-8")
    ]
    for page in stale:
        print(
            f"{page.relative_to(ROOT)}: tables {'written' if write else 'differ from benchmarks/results: make pages'}"
        )
        if write:
            page.write_text(filled(page.read_text(encoding="utf-8")), encoding="utf-8")
    return 1 if stale and not write else 0


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
