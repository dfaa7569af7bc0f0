"""Approximate against exact search of `hard_negatives`: recall, cosine and time.

    python benchmarks/mining/recall.py --data FOLDER [--size 20000] [--rows 2048] [--probes 4 8 16 32 64]

FOLDER holds `corpus/wiki_sentences_0*.txt.gz`. Needs faiss (`pip install "opencse[faiss]"`). The
vectors of all-MiniLM-L6-v2 are made once, in the cache of opencse, before anything is timed.

`--rows` sentences look for their two and their ten nearest: exactly, in a block of the whole corpus;
approximately, in the clusters of an inverted file whose centres are nearest (`probes`); and, as a
build does by default, in a random block of 10,000 sentences. Recall is the share of the exactly
nearest that the approximate search finds. Writes `benchmarks/results/mining-recall.csv`.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np
from mining import prepared

from opencse.text.mined.approximate import open_index, search
from opencse.text.mined.candidate_pools import CandidatePools, nearest, random_block, without_copies

RESULT = Path(__file__).parents[1] / "results" / "mining-recall.csv"
DEEP = 10
EVERYTHING = (-np.inf, np.inf)


def recall(found: CandidatePools, exact: CandidatePools, count: int) -> float:
    """Return the share of the exact `count` nearest among those that were found."""
    same = found.ids[:, :count, None] == exact.ids[:, None, :count]
    return float((same & (found.ids[:, :count, None] >= 0)).any(axis=1).mean())


def row(
    name: str, seconds: float, found: CandidatePools, exact: CandidatePools
) -> dict[str, object]:
    return {
        "search": name,
        "recall of 2": f"{recall(found, exact, 2):.3f}",
        "recall of 10": f"{recall(found, exact, DEEP):.3f}",
        "mean cosine of 2": f"{found.cosine[:, :2].mean():.3f}",
        "seconds": f"{seconds:.2f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--size", type=int, default=20_000)
    parser.add_argument("--rows", type=int, default=2048)
    parser.add_argument("--probes", type=int, nargs="+", default=[4, 8, 16, 32, 64])
    options = parser.parse_args()

    _, vectors = prepared(options.data, options.size, options.size)
    keys = vectors.sentences.keys
    rows = np.sort(random_block(len(keys), options.rows, seed=1))

    def timed(candidates: np.ndarray) -> tuple[float, CandidatePools]:
        start = time.perf_counter()
        found, _ = nearest(rows, candidates, keys, vectors.take, size=DEEP, window=EVERYTHING)
        return time.perf_counter() - start, found

    seconds, exact = timed(without_copies(np.arange(len(keys)), keys))
    block_seconds, block = timed(without_copies(random_block(len(keys), 10_000, seed=0), keys))
    table = [
        row("exact", seconds, exact, exact),
        row("random block of 10,000", block_seconds, block, exact),
    ]

    start = time.perf_counter()
    index = open_index(vectors)
    built = time.perf_counter() - start
    for probes in options.probes:
        start = time.perf_counter()
        found, _ = search(index, rows, vectors, size=DEEP, window=EVERYTHING, probes=probes)
        seconds = time.perf_counter() - start
        table.append(row(f"approximate, {probes} of {index.count} clusters", seconds, found, exact))

    with RESULT.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    for line in table:
        print(*line.values(), sep="\t")
    print(f"{len(keys):,} sentences, {len(rows):,} rows; index built or opened in {built:.1f} s")


if __name__ == "__main__":
    main()
