"""Collect reproduced tables: what came out beside what the papers print.

    opencse reproduce ENTRY --data DATA --corpus CORPUS -o PAPERS     # for each entry
    python benchmarks/reproduction/collect.py PAPERS

The corpus behind `results/reproduced.csv` has 20,000 sentences of at most 130 characters: 9,094
that have back-translations, given by `--paraphrases`, and others of Wikipedia. `--triplets` were
6,713 of SNLI and XNLI. Settings are those of `--scale small`: 200 steps of 64 sentences from
mini-mlm, one seed. The entries of DiffCSE, SAN Figure 4 and SAN Table 11 are of 3,200 sentences of
at most twelve words: --set training.max_steps=100 --set training.batch_size=32 --set
training.precision=bf16.

`results/reproduced.csv` has a line for each measured figure. OssCSE Table 6 keeps its form in
`results/reproduced-splits.csv`.
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).parents[1] / "results"
WIDE = "osscse/table-6"


def figures(table: dict[str, Any]) -> Iterator[list[str]]:
    """Yield entry, system, measure, what was measured and what was printed, for each measured cell."""
    for system, cells in table["rows"].items():
        for column, digits, cell in zip(table["columns"], table["digits"], cells, strict=True):
            if cell["values"]:
                printed = "" if cell["printed"] is None else f"{cell['printed']:.{digits}f}"
                measured = sum(cell["values"]) / len(cell["values"])
                yield [table["entry"], system, column, f"{measured:.{digits}f}", printed]


def wide(table: dict[str, Any]) -> Iterator[list[str]]:
    """Yield the header and the rows of a table, without what was printed."""
    yield ["", *table["columns"]]
    for name, cells in table["rows"].items():
        yield [name, *(f"{cell['values'][0]:.2f}" if cell["values"] else "–" for cell in cells)]


def main() -> None:
    """Write both files."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("papers", type=Path, help="the folder that `opencse reproduce -o` wrote")
    papers = parser.parse_args().papers
    tables = [
        json.loads(path.read_text(encoding="utf-8")) for path in sorted(papers.glob("*/*.json"))
    ]
    tables = [table for table in tables if "entry" in table]  # the folder of runs has other files
    lines = [["entry", "system", "measure", "here", "paper"]]
    for table in tables:
        if table["entry"] == WIDE:
            _write(RESULTS / "reproduced-splits.csv", list(wide(table)))
        else:
            lines += figures(table)
    _write(RESULTS / "reproduced.csv", lines)


def _write(path: Path, lines: list[list[str]]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(lines)
    print(f"{path.name}: {len(lines) - 1} lines")


if __name__ == "__main__":
    main()
