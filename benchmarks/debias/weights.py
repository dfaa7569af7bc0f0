"""The way before the meaning block: all weights learn, and are blended with the untouched ones.

    git worktree add OLD 45123fd7    # the commit before `debias` had a block
    PYTHONPATH=OLD/src python -m opencse run debias SENTENCES --backbone minilm --paraphrases
    TRANSLATIONS -o TRAINED
    python benchmarks/debias/weights.py minilm TRAINED/model DATA -o benchmarks/results/debias-weights.csv

TRAINED/model has the weights as they were trained if `share` in TRAINED/run.json is 1. A row has
some of the measures of measures.py at one share of the trained weights; all that was measured is
kept beside the table (OUT.json).
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path

import torch
from measures import FINAL, MEASURES, Measures, cell

from opencse.encoder import load_encoder
from opencse.encoder.embedder import Embedder

SHOWN = {
    "antonyms": "Negated antonyms, affirmed, %",
    "order": "Word order, reordered against exchanged, area",
    "middle": "Meaning, middle, %",
    "search": "Search, %",
    "roles": "Roles, %",
    "complaints": "Complaints, %",
    "CondaQA": "CondaQA, %",
    "topics": "guard-topics, precision@10",
    "Cranfield": "Cranfield, nDCG@10",
    "STS": "Average of the seven STS",
}
"""Columns of the table, by their titles: measures as measures.py names them."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("untouched")
    parser.add_argument("trained")
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--shares", type=float, nargs="+", default=[0.0, 0.25, 0.5, 0.75, 1.0])
    options = parser.parse_args()
    encoder, trained = (
        load_encoder(name, device="cpu").float() for name in (options.untouched, options.trained)
    )
    before, after = (
        {k: v.clone() for k, v in each.state_dict().items()} for each in (encoder, trained)
    )
    measures, record = Measures(options.data, held_out=True), options.out.with_suffix(".json")
    found = json.loads(record.read_text(encoding="utf-8")) if record.is_file() else {}
    for share in options.shares:
        if str(share) in found:
            continue
        mixed = {
            k: torch.lerp(v, after[k], share) if v.is_floating_point() else v
            for k, v in before.items()
        }
        encoder.load_state_dict(mixed)
        found[str(share)] = measures(Embedder(encoder, precision="bf16").encode, final=True)
        record.write_text(json.dumps(found), encoding="utf-8")
    names = {
        **{name: (key, 1) for name, key in MEASURES.items()},
        **{name: (name, n) for name, n in FINAL.items()},
    }
    with options.out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["share of the trained weights", *SHOWN])
        for share in options.shares:
            shown = (
                cell([found[str(share)].get(names[name][0])], names[name][1])
                for name in SHOWN.values()
            )
            writer.writerow([f"{share:g}", *shown])


if __name__ == "__main__":
    main()
