"""False hits of a semantic cache: of the untouched model, with a meaning block, and by the pair score.

    python benchmarks/debias/cache.py DATA OUT/model -o benchmarks/results/debias-cache.csv

A stored text is a hit if its similarity reaches the threshold that 90 % of the rewordings reach. A
cell has two shares: of the contradictions that hit, and of the texts that a rewording of something
else hits.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from curve import Encoded
from measures import Measures
from wording import Similar, false_hits

from opencse.debias.payload import CACHING
from opencse.evaluation.written_sets import TripletSet


def hits(similar: Similar, rows: list[tuple[str, str, str]]) -> str:
    """Return both shares, in percent."""
    contradictions, threshold = false_hits(similar, rows)
    texts, same, _ = zip(*rows, strict=True)
    other = np.array(same)[None] != np.array(same)[:, None]
    by_others = np.where(other, similar(texts, same), -9).max(axis=1)
    return f"{contradictions:.0f}, {100 * (by_others >= threshold).mean():.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("model")
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args()
    measures, encoded = Measures(options.data, held_out=True), Encoded(options.model)
    sets = {"XNLI dev": measures.development.nli}
    for task in measures.tasks:
        if isinstance(task, TripletSet):
            sets[task.name.removeprefix("dev-")] = [
                (one.anchor, one.positive, one.negative) for one in task.triplets
            ]
    old, new = encoded.at(0.0), encoded.at(encoded.chosen)
    packed, reranker = encoded.reranked()
    ways: dict[str, Similar] = {
        "untouched": lambda a, b: old(a) @ old(b).T,
        "block": lambda a, b: new(a) @ new(b).T,
        "reranked": lambda a, b: reranker.similarity(packed(a), packed(b)),
        "for a cache": lambda a, b: reranker.similarity(packed(a), packed(b), CACHING),
    }
    with options.out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["hits of contradictions, of other texts, %", "texts", *ways])
        for name, rows in sets.items():
            writer.writerow([name, len(rows), *(hits(similar, rows) for similar in ways.values())])


if __name__ == "__main__":
    main()
