"""False hits of a semantic cache: with a meaning block, and with its agreement as a second check.

    python benchmarks/debias/cache.py DATA OUT/model -o benchmarks/results/debias-cache.csv

A stored text is a hit if its cosine reaches the threshold that 90 % of the rewordings reach; with the second check, if
the agreement z·z' is at least -0.1 as well. A cell has the shares of the rewordings and of the contradictions that hit;
the last column those of a higher threshold in place of the check, at which as many rewordings hit.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

import numpy as np
from measures import SURE, Measures

from opencse.encoder import load_encoder
from opencse.encoder.embedder import Embedder
from opencse.encoder.meaning_block import CONTRADICTS, agreement
from opencse.evaluation.written_sets import TripletSet


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("model")
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args()
    measures = Measures(options.data, None, held_out=True)
    sets = {"XNLI dev": measures.development.nli}
    for task in measures.tasks:
        if isinstance(task, TripletSet):
            sets[task.name.removeprefix("dev-")] = [(one.anchor, one.positive, one.negative) for one in task.triplets]
    encode = Embedder(load_encoder(options.model, device="cpu"), precision="bf16").encode
    with options.out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            [
                "hits of rewordings, contradictions, %",
                "of each",
                "untouched",
                "block",
                "and agreement",
                "higher threshold",
            ]
        )
        for name, rows in sets.items():
            texts, *others = (encode([row[side] for row in rows]) for side in range(3))
            pairs = [(texts, other) for other in others]
            cells = []
            for width in (texts.shape[1] // 2, texts.shape[1]):
                scale = (texts[0, :width] ** 2).sum()
                cosines = [np.einsum("ij,ij->i", a[:, :width], b[:, :width]) / scale for a, b in pairs]
                hits = [cosine >= np.quantile(cosines[0], 1 - SURE) for cosine in cosines]
                cells.append(hits)
            cells.append([hit & (agreement(*pair) >= CONTRADICTS) for hit, pair in zip(hits, pairs, strict=True)])
            cells.append([cosine >= np.quantile(cosines[0], 1 - cells[-1][0].mean()) for cosine in cosines])
            shares = (", ".join(f"{100 * hit.mean():.0f}" for hit in hits) for hits in cells)
            writer.writerow([name, len(rows), *shares])


if __name__ == "__main__":
    main()
