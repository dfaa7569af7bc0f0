"""How far agreement and scores of an exported graph are from PyTorch's, where it matters: on pairs about the same.

    OMP_NUM_THREADS=1 python benchmarks/export/onnx_agreement.py MODEL [--precision fp16 …] [--pairs 500] [--out CSV]

MODEL is a folder with a meaning block. The pairs are rewordings and contradictions of the
development sets, the constraint searches and the complaints: each anchor with both.
"""

from __future__ import annotations

import argparse
import csv
import tempfile
from pathlib import Path

import numpy as np

from opencse.commands.integrations.onnx import PRECISIONS, OnnxEncoder, export_onnx
from opencse.debias.payload import CACHING, Parts, agreement, score_pairs
from opencse.debias.reranker import Reranker
from opencse.evaluation.written_sets import load_development, read_triplets

DEBIAS = Path(__file__).parents[1] / "debias"


def pairs(count: int) -> tuple[list[str], list[str]]:
    """Return random pairs of texts."""
    sets = [
        *load_development(),
        read_triplets(DEBIAS / "pairs" / "constraints.tsv"),
        read_triplets(DEBIAS / "block" / "complaints" / "meaning.tsv"),
    ]
    first = []
    second = []
    for written in sets:
        for triplet in written.triplets:
            first += [triplet.anchor, triplet.anchor]
            second += [triplet.positive, triplet.negative]
    chosen = np.random.default_rng(0).choice(len(first), min(count, len(first)), replace=False)
    return [first[row] for row in chosen], [second[row] for row in chosen]


def scores(first: Parts, second: Parts) -> dict[str, np.ndarray]:
    """Return what is compared, by name."""
    return {
        "agreement": agreement(first, second),
        "ranking": score_pairs(first, second),
        "cache": score_pairs(first, second, CACHING),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path)
    parser.add_argument("--precision", nargs="+", default=PRECISIONS)
    parser.add_argument("--pairs", type=int, default=500)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    first, second = pairs(arguments.pairs)
    count = len(first)
    reranker = Reranker(arguments.model)
    parts = reranker.parts([*first, *second])
    expected = scores(parts[:count], parts[count:])
    rows = []
    for precision in arguments.precision:
        with tempfile.TemporaryDirectory() as folder:
            export_onnx(arguments.model, folder, precision=precision, overwrite=True)
            megabytes = (Path(folder) / "model.onnx").stat().st_size / 1e6
            found = OnnxEncoder(folder).parts([*first, *second])
        row = {"": precision, "size, MB": f"{megabytes:.0f}"}
        for name, values in scores(found[:count], found[count:]).items():
            gaps = np.abs(values - expected[name])
            row[f"{name}, mean"] = f"{gaps.mean():.4f}"
            row[f"{name}, 99th"] = f"{np.quantile(gaps, 0.99):.4f}"
            row[f"{name}, largest"] = f"{gaps.max():.4f}"
        print(*row.values(), sep="\t", flush=True)
        rows.append(row)
    if arguments.out is not None:
        with arguments.out.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)


if __name__ == "__main__":
    main()
