"""What `--compatible` trades: recall among vectors of the old model, and meaning, at each share of the change kept.

    OMP_NUM_THREADS=1 python benchmarks/debias/compatible.py DATA RUN CORPUS [--shares 1 0.6 0.2] [--out FILE.csv]

RUN is a finished run of `opencse run debias`; the weights at the end of training follow from those that were kept. The
first 1,000 and 5,000 sentences of CORPUS are documents and queries. Among 1,000, recall is what `--compatible` limits:
the share of the ten nearest texts among new vectors that a new query finds among old vectors. "Same hits" compares with
what the old query finds among old vectors. The other columns are development sets.
"""

from __future__ import annotations

import argparse
import csv
import json
from itertools import islice
from pathlib import Path

import numpy as np
from wording import quads

from opencse.encoder import load_encoder
from opencse.encoder.embedder import Embedder
from opencse.evaluation import PairsTask, evaluate_tasks, load_development, load_sts
from opencse.evaluation.compatibility import stored_vectors
from opencse.io.corpus import read_texts
from opencse.runs.blending import copy_weights, interpolate

DOCUMENTS = 5000
TOP = 10
HEADER = ["change kept, %", "recall, 1,000", "recall, 5,000", "same hits, 5,000", "mean cosine"]
MEANING = ["negated antonyms", "dev-meaning", "dev-search", "dev-roles", "STS-B dev"]


def unit(matrix: np.ndarray) -> np.ndarray:
    return matrix / np.linalg.norm(matrix, axis=1, keepdims=True)


def same_hits(old: np.ndarray, new: np.ndarray) -> float:
    """Share of the ten nearest old vectors of an old query that the new query finds, too."""
    lists = []
    for queries in (unit(old), unit(new)):
        similarity = queries @ unit(old).T
        np.fill_diagonal(similarity, -np.inf)
        lists.append(np.argpartition(-similarity, TOP, axis=1)[:, :TOP])
    return float(np.mean([len(np.intersect1d(a, b)) / TOP for a, b in zip(*lists, strict=True)]))


def negated_antonyms(encode: Embedder) -> float:
    """Percent of quadruples whose sentence is nearest to the one that means the same."""
    rows = [quad for part in quads().values() for quad in part]
    vectors = [unit(encode([row[i] for row in rows])) for i in range(4)]
    same, *others = ((vectors[0] * each).sum(axis=1) for each in vectors[1:])
    return 100 * float(np.mean(same > np.max(others, axis=0)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("run", type=Path)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--shares", type=float, nargs="+", default=[1, 0.8, 0.6, 0.4, 0.3, 0.2, 0.1, 0])
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    record = json.loads((options.run / "run.json").read_text(encoding="utf-8"))
    encoder = load_encoder(record["backbone"], pooling="backbone")
    before = copy_weights(encoder)
    kept = copy_weights(load_encoder(options.run / "model", pooling="backbone"))
    texts = list(dict.fromkeys(islice(read_texts(options.corpus), DOCUMENTS)))
    old = Embedder(encoder)(texts)
    tasks = [*load_development(), PairsTask(pairs=load_sts(options.data, tasks=["STS-B"], split="dev")[0])]
    rows = [[*HEADER, *MEANING]]
    for share in options.shares:
        interpolate(encoder, before, kept, share / record["outcome"]["share"])
        encode = Embedder(encoder)
        new = encode(texts)
        few, many = stored_vectors(old[:1000], new[:1000]), stored_vectors(old, new)
        assert few.recall is not None
        assert many.recall is not None
        scores = {result.task: result.score for result in evaluate_tasks(encode, tasks).results}
        mixed = [100 * value for value in (few.recall, many.recall, same_hits(old, new))]
        meaning = [negated_antonyms(encode), *(scores[name] for name in MEANING[1:4]), scores["STS-B"]]
        cells = [f"{100 * share:.0f}", *(f"{value:.1f}" for value in mixed), f"{many.cosine:.3f}"]
        rows.append([*cells, *(f"{value:.1f}" for value in meaning)])
        print("\t".join(rows[-1]), flush=True)
    if options.out is not None:
        with options.out.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)


if __name__ == "__main__":
    main()
