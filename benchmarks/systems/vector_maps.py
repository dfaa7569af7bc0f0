"""Score the untouched backbone of the systems' table with BERT-whitening and with BERT-flow.

    python benchmarks/systems/vector_maps.py SENTENCES DATA -o OUT.jsonl --seeds 1,2,3

SENTENCES is the table of the short runs (`systems.py` writes it to OUT/corpus/corpus.parquet), so
that the maps are fitted on what the systems were trained on. Each line has what a line of
`benchmarks/results/systems-short.jsonl` has; whitening has no seed. Finished lines are kept.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

from opencse.encoder.backbone import Backbone
from opencse.encoder.embedder import Embedder
from opencse.encoder.vector_maps import add_flow, add_whitening
from opencse.evaluation.probes import load_probe_data, run_probes
from opencse.text.corpus import Corpus


def scored(encoder: Any, data: Path) -> dict[str, Any]:
    """Return STS scores and surface bias of a model, as `systems_table.py` writes them."""
    found = run_probes(load_probe_data(data=data), Embedder(encoder))
    assert found.transformations is not None
    split = found.splits[-1]
    above = found.transformations.paraphrase_above_negation.value or 0.0
    return {
        "sts": {task.task: round(task.score or 0.0, 2) for task in found.sts},
        "cont": round(split.consistent.value or 0.0, 3),
        "oppn": round(split.opposed.value or 0.0, 3),
        "above": round(100 * above, 3),
    }


def main() -> None:
    """Add the lines that OUT lacks."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("sentences", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--backbone", default="mini-mlm")
    parser.add_argument("--pooling", default="mean")
    parser.add_argument(
        "--seeds", type=lambda text: [int(s) for s in text.split(",")], default=[1, 2, 3]
    )
    options = parser.parse_args()
    sentences = list(Corpus(options.sentences).texts())
    encoder = Backbone(options.backbone).encoder(options.pooling)

    done = set()
    if options.out.is_file():
        for line in options.out.read_text(encoding="utf-8").splitlines():
            run = json.loads(line)
            done.add((run["system"], run["seed"]))
    jobs = [("bert-whitening", 1), *(("bert-flow", seed) for seed in options.seeds)]
    for system, seed in jobs:
        if (system, seed) in done:
            continue
        start = time.perf_counter()
        if system == "bert-flow":
            model = add_flow(encoder, sentences, seed=seed, precision="fp32")
        else:
            model = add_whitening(encoder, sentences, precision="fp32")
        seconds = round(time.perf_counter() - start)
        line = {"system": system, "seed": seed, "seconds": seconds, **scored(model, options.data)}
        with options.out.open("a", encoding="utf-8") as file:
            file.write(f"{json.dumps(line)}\n")
        print(line, flush=True)


if __name__ == "__main__":
    main()
