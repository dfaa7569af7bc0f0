"""Which of the papers' ideas carry over to a model that is in use? Systems as continued trainings of it.

    python benchmarks/systems/systems.py SENTENCES DATA -o RUNS --backbone minilm --train-only [--set KEY=VALUE]
    python benchmarks/debias/ideas.py RUNS DATA -o benchmarks/results/debias-ideas.csv [--backbone minilm] [--seed 1]

A row is a system, with mean and standard deviation over its seeds; the first is the model that all
start from. What a model scored is kept beside it (`measures.json`), so several processes, one for
each --seed, can share the work.
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path

from measures import MEASURES, Measures, cell

from opencse.encoder import load_encoder
from opencse.encoder.embedder import Embedder

LEFT_OUT = (
    *(
        "Negated antonyms, affirmed, %",
        "Word order, reordered against exchanged, area",
        "Meaning, far, %",
    ),
    *(
        "Complaints as searches, %",
        "XNLI dev, %",
        "SICK, entailed against contradicted, area",
        "SICK-R train",
    ),
    *("Roles, %", "MRPC train, %", "guard-questions, MRR", "guard-answers, MRR", "guard-long, MRR"),
)


def scored(folder: Path, model: str, measures: Measures) -> dict[str, float]:
    """Return the measures of a model, from `measures.json` where they are known."""
    known = folder / "measures.json"
    if not known.is_file():
        encode = Embedder(
            load_encoder(model, pooling="backbone", device="cpu"), precision="auto"
        ).encode
        known.write_text(json.dumps(measures(encode)), encoding="utf-8")
        print(known, flush=True)
    return json.loads(known.read_text(encoding="utf-8"))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("runs", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--backbone", default="minilm")
    parser.add_argument("--seed", default="*", help="score only the models of this seed")
    options = parser.parse_args()
    measures = Measures(options.data)
    rows = {"untouched": [scored(options.runs, options.backbone, measures)]}
    for folder in sorted((options.runs / "runs").iterdir()):
        models = sorted(folder.glob(f"seed-{options.seed}/model"))
        if models:
            rows[folder.name] = [scored(model.parent, str(model), measures) for model in models]
    shown = {
        n: key for n, key in MEASURES.items() if key in rows["untouched"][0] and n not in LEFT_OUT
    }
    with options.out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["", *shown])
        for label, found in rows.items():
            writer.writerow(
                [label, *(cell([one[key] for one in found], 1) for key in shown.values())]
            )


if __name__ == "__main__":
    main()
