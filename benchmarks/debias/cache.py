"""False hits of a semantic cache: of the untouched model, with a meaning block, and by the pair score.

    python benchmarks/debias/cache.py DATA MODEL -o OUT

MODEL is `minilm` or a folder with a meaning block. What the block says of each text is kept in
OUT/MODEL.npz, which pair_score.py shares; the table is OUT/cache.csv.

A stored text is a hit if its similarity reaches the threshold that 90 % of the rewordings reach. A
cell has two shares: of the contradictions that hit, and of the texts that a rewording of something
else hits.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from measures import Measures
from pair_score import Stored
from wording import Similar, false_hits

from opencse.debias.payload import CACHING, score
from opencse.debias.reranker import Reranker
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
    measures = Measures(options.data, held_out=True)
    stored = Stored(Reranker(options.model), options.out / f"{Path(options.model).name}.npz")
    sets = {"XNLI dev": measures.development.nli}
    for task in measures.tasks:
        if isinstance(task, TripletSet):
            sets[task.name.removeprefix("dev-")] = [
                (one.anchor, one.positive, one.negative) for one in task.triplets
            ]
    stored.add([text for rows in sets.values() for row in rows for text in row])
    ways: dict[str, Similar] = {
        "untouched": lambda a, b: stored.old(stored(a)) @ stored.old(stored(b)).T,
        "block": lambda a, b: stored(a).vectors @ stored(b).vectors.T,
        "reranked": lambda a, b: score(stored(a), stored(b)),
        "for a cache": lambda a, b: score(stored(a), stored(b), CACHING),
    }
    with (options.out / "cache.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["hits of contradictions, of other texts, %", "texts", *ways])
        for name, rows in sets.items():
            writer.writerow([name, len(rows), *(hits(similar, rows) for similar in ways.values())])


if __name__ == "__main__":
    main()
