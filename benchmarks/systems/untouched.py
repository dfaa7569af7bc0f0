"""Score the untouched backbone of the systems' table on STS, with each pooling.

    python benchmarks/systems/untouched.py DATA -o benchmarks/results/systems-untouched.csv

Systems that pool alike start from the same score, and a run that hardly moves from it has learned
little.
"""

from __future__ import annotations

import argparse
import csv
from pathlib import Path

from opencse.encoder.backbone import Backbone
from opencse.encoder.embedder import Embedder
from opencse.evaluation import evaluate_tasks, load_sts
from opencse.recipes import load_recipe

POOLINGS = {
    "cls": "[CLS]",
    "mean": "mean of the tokens",
    "first_last": "mean of the tokens, first and last layer",
    "last_two": "mean of the tokens, last two layers",
}


def main() -> None:
    """Write the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--backbone", default="mini-mlm")
    options = parser.parse_args()
    backbone = Backbone(options.backbone)
    tasks = load_sts(options.data)
    encoders = {title: backbone.encoder(pooling) for pooling, title in POOLINGS.items()}
    template = load_recipe("promptbert").views["anchor"].prompt
    encoders["mask of PromptBERT's template"] = backbone.encoder("mask", prompt=template)
    rows = [["pooling", *(task.name for task in tasks), "Average"]]
    for title, encoder in encoders.items():
        results = evaluate_tasks(Embedder(encoder), tasks)
        assert results.average is not None
        scores = [*(result.score for result in results.results), results.average]
        rows.append([title, *(f"{score:.2f}" for score in scores)])
        print(*rows[-1], flush=True)
    with options.out.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(rows)


if __name__ == "__main__":
    main()
