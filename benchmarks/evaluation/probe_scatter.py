"""Write the cosine and the changed words of each paraphrase and negation of the probe.

    python benchmarks/evaluation/probe_scatter.py minilm

Writes benchmarks/results/probe-scatter.csv, from which `make pages` draws docs/figures/probe-scatter.svg.
"""

from __future__ import annotations

import csv
import sys
from pathlib import Path

import opencse

TABLE = Path(__file__).parents[1] / "results" / "probe-scatter.csv"


def main(model: str) -> None:
    """Probe a model, and write a row for each pair."""
    (scores,) = opencse.probe(model).scores.values()
    assert scores.transformations is not None
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["kind", "cosine", "match error rate"])
        for kind in scores.transformations.kinds:
            if kind.kind not in ("paraphrase", "negation"):
                continue
            for cosine, changed in zip(kind.cosines, kind.error_rates, strict=True):
                writer.writerow([kind.kind, f"{cosine:.3f}", f"{changed:.3f}"])


if __name__ == "__main__":
    main(sys.argv[1])
