"""Train the faithful variants on recordings of the authors' own code, and write how far the numbers differ.

    python benchmarks/reproduction/parity.py              # all systems
    python benchmarks/reproduction/parity.py simcse dclr  # some of them; the other rows stay
    python benchmarks/reproduction/parity.py --no-scores  # without development scores and embeddings
    python benchmarks/reproduction/parity.py --steps 5    # the first steps only, and no final weights
    python benchmarks/reproduction/parity.py --dropout 0  # without the runs that have dropout

Needs the recordings (`OPENCSE_PARITY`) and the data that they name (`OPENCSE_DATA`). The network is in
double precision. Writes `benchmarks/results/parity.csv`.
"""

from __future__ import annotations

import argparse
import csv
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT))

from tests.parity.recordings import (  # noqa: E402
    SYSTEMS,
    Recording,
    find_data,
    find_recordings,
    ifm_errors,
    relative_errors,
    replay,
    token_mismatches,
)

OUT = ROOT / "benchmarks" / "results" / "parity.csv"
COLUMNS = (
    "system",
    "dropout",
    "steps",
    "loss",
    "gradient norm",
    "weights",
    "development score",
    "embeddings",
    "rows with other tokens",
)


def measure(
    recording: Recording, dropout: str, evaluate: bool, steps: int | None
) -> dict[str, str]:
    """Return the row of the table for one of the authors' runs."""
    run = f"dropout{dropout}_authors_fp64"
    with tempfile.TemporaryDirectory() as folder:
        played = replay(recording, run, Path(folder), evaluate=evaluate, steps=steps)
    errors = relative_errors(played, recording.result(run))
    row = {"system": recording.name, "dropout": dropout, "steps": str(len(played.log))}
    for column in COLUMNS[3:-1]:
        row[column] = f"{errors[column]:.1e}" if column in errors else ""
    row[COLUMNS[-1]] = str(len(token_mismatches(played, recording)))
    return row


def main() -> None:
    """Measure the systems, and replace their rows in the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("systems", nargs="*", default=[*SYSTEMS, "ifm"])
    parser.add_argument("--no-scores", action="store_true")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--dropout", choices=("0", "0.1"), help="both unless given")
    options = parser.parse_args()
    dropouts = ["0", "0.1"]
    if options.dropout:
        dropouts = [options.dropout]
    evaluate = not options.no_scores and options.steps is None
    folder, data = find_recordings(), find_data()
    if folder is None or data is None:
        sys.exit("no recordings: set OPENCSE_PARITY and OPENCSE_DATA")
    for name in options.systems:
        recording = Recording(name, folder, data)
        if name == "ifm":
            row = {"system": name, "dropout": "", "steps": "1"}
            for key, value in ifm_errors(recording).items():
                row[key] = f"{value:.1e}"
            write(row)
        else:
            for dropout in dropouts:
                if f"dropout{dropout}_authors_fp64" in recording.meta["results"]:
                    write(measure(recording, dropout, evaluate, options.steps))
        print(name, flush=True)


def write(row: dict[str, str]) -> None:
    """Put a row into the table, whose other rows stay; systems are in their usual order."""
    rows = {}
    if OUT.is_file():
        with OUT.open(encoding="utf-8", newline="") as file:
            rows = {(old["system"], old["dropout"]): old for old in csv.DictReader(file)}
    rows[row["system"], row["dropout"]] = row
    order = [*SYSTEMS, "ifm"]
    keys = sorted(rows, key=lambda key: (order.index(key[0]), key[1]))
    with OUT.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows(rows[key] for key in keys)


if __name__ == "__main__":
    main()
