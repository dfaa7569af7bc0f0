"""What `check`, `run debias` and `compare` say about texts of one's own, before and after: one table over corpora.

    python benchmarks/check/new_user.py "medical leaflets=leaflets" "licences=policies" --table new-user-debias.csv

Each argument is a title and a folder, in which the commands wrote:

    opencse check minilm --texts docs/ --queries searches.txt --minutes 4 -o FOLDER/before
    opencse run debias docs/ --backbone minilm --minutes 20 -o FOLDER/run
    opencse check FOLDER/run/model --texts docs/ --queries searches.txt --minutes 4 -o FOLDER/after
    opencse compare minilm FOLDER/run/model --texts docs/ --queries searches.txt -o FOLDER/compared
"""

from __future__ import annotations

import argparse
import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Cells = dict[str, tuple[str, str]]
"""Measure: what it is before and after; what has no before is empty there."""


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
            yield f"by {name}, %", percent(estimate)
    for name, estimate in result["rewordings"].items():
        yield f"before a rewording: {name}, %", percent(estimate)
    yield "inside passages, %", percent(result["contradiction_first_in_passages"])
    yield "contradictions above the threshold, %", percent(result["accepted"])


def measured(folder: Path) -> Cells:
    """All measures of one corpus."""
    before, after = (dict(found_by_check(read(folder / name / "check.json"))) for name in ("before", "after"))
    cells = {name: (value, after.get(name, "–")) for name, value in before.items()}
    run, timings = read(folder / "run" / "run.json"), read(folder / "run" / "results.json")["timings"]
    for name, (first, last) in run["outcome"]["guards"].items():
        cells[name] = (f"{first:.1f}", f"{last:.1f}")
    cells["training steps"] = ("", f"{run['outcome']['steps']:,}")
    cells["share of the way kept, %"] = ("", f"{100 * run['outcome']['share']:.0f}")
    cells["minutes of the run"] = ("", f"{sum(timings.values()) / 60:.0f}")
    return cells


def read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", metavar="TITLE=FOLDER")
    parser.add_argument("--table", type=Path, help="write the table here, as CSV")
    options = parser.parse_args()
    titles, folders = zip(*(each.split("=", 1) for each in options.corpora), strict=True)
    columns = [measured(Path(folder)) for folder in folders]
    names = list(dict.fromkeys(name for cells in columns for name in cells))
    rows = [["", *(f"{title}, {when}" for title in titles for when in ("before", "after"))]]
    rows += [[name, *(cell for cells in columns for cell in cells.get(name, ("–", "–")))] for name in names]
    for row in rows:
        print("| " + " | ".join(row) + " |")
    if options.table:
        with options.table.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)


if __name__ == "__main__":
    main()
