"""Collect the development scores by step of the runs that systems.py left.

    python benchmarks/systems/curves.py OUT/runs

Writes benchmarks/results/systems-curves.csv with the mean over the seeds of each system, from which
`make pages` draws docs/figures/learning-curves.svg.
"""

from __future__ import annotations

import csv
import json
import statistics
import sys
from pathlib import Path

TABLE = Path(__file__).parents[1] / "results" / "systems-curves.csv"


def main(folder: Path) -> None:
    """Read the metrics of each finished run, and write the mean by system and step."""
    scores: dict[tuple[str, int], list[float]] = {}
    for metrics in sorted(folder.glob("*/seed-*/metrics.jsonl")):
        if not (metrics.parent / "model").is_dir():
            continue
        system = metrics.parent.parent.name
        for line in metrics.read_text(encoding="utf-8").splitlines():
            measured = json.loads(line)
            if "dev" in measured:
                scores.setdefault((system, measured["step"]), []).append(measured["dev"])
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["system", "step", "seeds", "dev"])
        for (system, step), values in scores.items():
            writer.writerow([system, step, len(values), f"{statistics.fmean(values):.2f}"])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
