"""What each share of the way from the untouched model to the trained one knows: what `--tolerance` trades.

    python benchmarks/debias_way.py OUT/debias/seed-1 DATA --views VIEWS [--shares 1 0.8 0.6]

RUN is a finished run of `opencse run debias`, whatever its guard has kept; VIEWS as in wording.py. Prints a table.
All columns but probe, Oppn., Cont. and STS are development data.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path

import torch
from debias import COLUMNS
from wording import Development

from opencse.encoder import load_encoder
from opencse.encoder.embedder import Embedder
from opencse.probing import Prober
from opencse.probing.run import gather
from opencse.training.blending import copy_weights, go

LAST = {"STS-B dev · SICK-R train": (["STS-B", "SICK-R"], 1), "STS": (["STS"], 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("data", type=Path)
    parser.add_argument("--views", type=Path, help="held-out sentences for wording.py's word order")
    parser.add_argument("--shares", type=float, nargs="+", default=[1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4])
    options = parser.parse_args()
    record = json.loads((options.run / "run.json").read_text(encoding="utf-8"))
    kept = record["outcome"]["share"]
    encoder = load_encoder(record["backbone"], pooling="backbone")
    start = copy_weights(encoder)
    model = copy_weights(load_encoder(options.run / "model", pooling="backbone"))
    development, prober = Development(options.data, options.views), Prober(gather(data=options.data).material)
    columns = {name: column for name, column in COLUMNS.items() if name in list(COLUMNS)[:5]} | LAST
    print(f"| kept, % | {' | '.join(columns)} |")
    print("|---:" * (len(columns) + 1) + "|")
    for share in options.shares:
        go(encoder, start, model, share / kept)
        encode = Embedder(encoder, precision="bf16").encode
        with torch.inference_mode():
            found, values = prober(encode), development.measure(encode)
        assert found.splits is not None
        assert found.transformations is not None
        split = found.splits.averages[1]
        values |= {"Oppn.": split.opposed.value, "Cont.": split.consistent.value}  # the test sets', not STS-B dev's
        values["probe, %"] = 100 * found.transformations.paraphrase_above_negation.value
        values["STS"] = statistics.mean(task.score for task in found.sts)
        cells = (" · ".join(f"{values[key]:.{digits}f}" for key in keys) for keys, digits in columns.values())
        print(f"| {100 * share:.0f} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
