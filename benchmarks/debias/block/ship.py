"""Average trained blocks, measure the strength, and write the one that comes with the package for its backbone.

The scores by strength are written to benchmarks/results/debias-strength.csv as well.

    python benchmarks/debias/block/ship.py BLOCK[=WEIGHT]... --text TEXT --rows ROWS [--backbone minilm]

BLOCK is a folder with the block's own files; of several, each trained from another, the weighted
mean is taken. TEXT says in a few words what it was trained on, ROWS how many rows.
"""

from __future__ import annotations

import argparse
import csv
import json
from dataclasses import asdict
from pathlib import Path

from opencse.debias.meaning_block import MeaningBlock
from opencse.debias.shipped import BLOCKS, MEASURED, append_block, block_key, encoding_settings
from opencse.debias.strength import find_strength
from opencse.debias.training import block_evaluators
from opencse.encoder import load_encoder
from opencse.recipes import load_recipe

RESULTS = Path(__file__).parents[2] / "results"


def mean_block(named: list[str]) -> MeaningBlock:
    """Return the weighted mean of blocks."""
    paths, weights = zip(
        *((path, float(weight or 1)) for path, _, weight in (name.partition("=") for name in named))
    )
    block = MeaningBlock.load(paths[0])
    states = [MeaningBlock.load(path).state_dict() for path in paths]
    mean = {
        name: sum(
            weight / sum(weights) * state[name]
            for weight, state in zip(weights, states, strict=True)
        )
        for name in states[0]
    }
    block.load_state_dict(mean)
    return block


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("blocks", nargs="+", metavar="BLOCK[=WEIGHT]")
    parser.add_argument("--text", required=True)
    parser.add_argument("--rows", type=int, required=True)
    parser.add_argument("--backbone", default="minilm")
    options = parser.parse_args()
    settings = load_recipe("debias").block
    assert settings is not None
    model = load_encoder(options.backbone, device="cpu").eval()
    key, block = block_key(model), mean_block(options.blocks)
    settings_of_model = encoding_settings(model)
    append_block(model, block)
    evaluators = block_evaluators(precision="bf16")
    evaluators.start(model)
    curve = find_strength(block, evaluators, settings.tolerance)
    folder = BLOCKS / options.backbone
    folder.mkdir(parents=True, exist_ok=True)
    block.save(str(folder))
    (BLOCKS / "meaning_block.py").unlink()  # the package has it
    measured = {
        "model": options.backbone,
        "beside": key,
        "settings": settings_of_model,
        "text": options.text,
        "rows": options.rows,
        "curve": asdict(curve),
    }
    (folder / MEASURED).write_text(json.dumps(measured, indent=1), encoding="utf-8")
    table = curve.table()
    shown = [row for i, row in enumerate(table.rows) if i % 2 == 0 or "chosen" in str(row[0])]
    with (RESULTS / "debias-strength.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(
            [*map(str, row)] for row in (table.columns, *shown)
        )
    print(table.markdown())


if __name__ == "__main__":
    main()
