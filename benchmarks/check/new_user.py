"""What `check` says of texts of one's own: untouched, with the block as it ships, and after learning from the texts.

    python benchmarks/check/new_user.py "reference of Python=python" "licences=licences" --table new-user-debias.csv

Each argument is a title and a folder, in which the commands wrote (docs/measurements/new-user.md):

    python benchmarks/check/own_texts.py TEXTS
    opencse run debias --backbone minilm -o shipped
    opencse run debias docs/ --backbone minilm --minutes 4 -o FOLDER/run
    opencse check minilm --texts docs/ --minutes 6 -o FOLDER/untouched
    opencse check shipped/model --texts docs/ --minutes 6 -o FOLDER/shipped
    opencse check FOLDER/run/model --texts docs/ --minutes 6 -o FOLDER/learned
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

STATES = ("untouched", "shipped", "learned")
Cells = dict[str, tuple[str, ...]]
"""Measure: what it is in each state; empty where a state has none."""


def percent(estimate: dict[str, Any] | None, *, interval: bool = True) -> str:
    """A share in percent with its 95 % interval, or a dash where nothing was measured."""
    if estimate is None or estimate["value"] is None:
        return "–"
    value, low, high = (f"{100 * estimate[key]:.0f}" for key in ("value", "low", "high"))
    return f"{value} ({low} to {high})" if interval else value


def found_by_check(result: dict[str, Any]) -> Iterator[tuple[str, str]]:
    yield "searches", str(result["contradiction_first"]["rows"])
    yield "contradiction first, %", percent(result["contradiction_first"])
    for name, estimate in result["kinds"].items():
        if estimate["rows"] >= 10:
            yield f"contradicted by {name}, %", percent(estimate)
    for name, estimate in result["rewordings"].items():
        yield f"reworded by {name}, %", percent(estimate)
    yield "inside passages, %", percent(result["contradiction_first_in_passages"])
    yield "false hits of a cache, %", percent(result["accepted"])


def measured(folder: Path) -> Cells:
    """All measures of one corpus."""
    states = [dict(found_by_check(read(folder / name / "check.json"))) for name in STATES]
    cells: Cells = {name: tuple(state.get(name, "–") for state in states) for name in states[0]}
    run, timings = (
        read(folder / "run" / "run.json"),
        read(folder / "run" / "results.json")["timings"],
    )
    cells["training steps"] = ("", "", f"{run['outcome']['steps']:,}")
    cells["minutes of the run"] = ("", "", f"{sum(timings.values()) / 60:.0f}")
    return cells


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpora", nargs="+", metavar="TITLE=FOLDER")
    parser.add_argument("--table", type=Path, help="write the table here, as CSV")
    options = parser.parse_args()
    titles, folders = zip(*(each.split("=", 1) for each in options.corpora), strict=True)
    columns = [measured(Path(folder)) for folder in folders]
    names = list(dict.fromkeys(name for cells in columns for name in cells))
    rows = [["", *(f"{title}, {when}" for title in titles for when in STATES)]]
    rows += [
        [name, *(cell for cells in columns for cell in cells.get(name, ("–",) * len(STATES)))]
        for name in names
    ]
    for row in rows:
        print("| " + " | ".join(row) + " |")
    if options.table:
        with options.table.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)


if __name__ == "__main__":
    main()
