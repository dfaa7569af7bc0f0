"""What each part of the meaning block gives: its small parts trained again without one, or without some of the rows.

    python benchmarks/debias/block/ablate.py ROWS.parquet -o benchmarks/results/debias-parts.csv [--seeds 1 2 3]

ROWS are those of table.py, of which a sample is drawn. The copied layers stay as they are in the
block that ships, and are read once; code, φ and P are trained from the beginning, by train.py's
loss and batches. The measures are those of strength 0.4, of complaints reranked too, with mean and
standard deviation over seeds. What was measured is kept beside the table (OUT.jsonl).
"""

from __future__ import annotations

import argparse
import csv
import json
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import torch
import train
from torch import Tensor, nn

sys.path.append(str(Path(__file__).parents[1]))
from measures import MEASURES, cell, complaints

from opencse.debias.meaning_block import MeaningBlock
from opencse.debias.payload import Parts, is_yes_no_question, score
from opencse.debias.shipped import BLOCKS
from opencse.evaluation.task import distinct_texts, evaluate_tasks
from opencse.evaluation.written_sets import load_development, load_guard

STRENGTH, SAMPLE, LONGEST, BATCH = 0.4, 14_000, 256, 16
ROWS = {
    "frames and their searches": ("frames", "searches"),
    "claims": ("claims", "claims_short"),
    "paraphrases": ("paraphrases",),
    "plain sentences": ("plain",),
    "antonyms and patterns": ("antonyms", "opposites", "patterns", "contradicted"),
    "roles and order": ("roles", "reordered"),
    "questions and passages": ("questions", "articles", "passages"),
}
"""Rows that are left out together."""
LACKS = ("", "φ", "copy", "averages", *ROWS)
LEFT_OUT = ("Meaning, far, %", "Complaints as searches, %")
TASKS = [*complaints(), *load_development(), *load_guard()]


class First(nn.Module):
    """Returns the first numbers of its input: e in place of φ."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def forward(self, numbers: Tensor) -> Tensor:
        """Return them, (n, count)."""
        return numbers[:, : self.count]


def opened(table: pa.Table, longest: int) -> tuple[train.Trainer, Tensor]:
    """Return rows with what the untouched model says of their texts, and what the copied layers say, (texts, read)."""
    train.WIDTH = longest
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "rows.parquet"
        pq.write_table(table, path)
        options = {
            "rows": path,
            "backbone": "minilm",
            "start": BLOCKS / "minilm",
            "seed": 1,
            "small": True,
        }
        trainer = train.Trainer(argparse.Namespace(**options, rate=1.0, begin_with=BATCH, keep=[]))
    trainer.block.eval()
    assert trainer.copies is not None
    return trainer, trainer.copies


def sampled(path: Path) -> pa.Table:
    """Return some rows of each part, in the shares in which batches draw them."""
    table = pq.read_table(path)
    part = np.array(table["part"].to_pylist())
    shares = {name: float(train.SHARES.get(name, 1)) for name in np.unique(part)}
    rng, chosen = random.Random(1), list[int]()
    for name, share in shares.items():
        rows = np.flatnonzero(part == name).tolist()
        chosen += rng.sample(rows, min(len(rows), round(SAMPLE * share / sum(shares.values()))))
    return table.take(sorted(chosen))


def trained(
    trainer: train.Trainer, copied: Tensor, lacks: str, steps: int, seed: int
) -> MeaningBlock:
    """Return the block with small parts that were trained without something."""
    torch.manual_seed(seed)
    block, frozen, nearest, parts = (
        trainer.block,
        trainer.frozen,
        trainer.nearest,
        trainer.rows.parts,
    )
    sizes, width = block.config, int(block.config["width"])
    fresh = MeaningBlock(**{name: sizes[name] for name in sizes if name != "strength"})
    block.code, block.sharpen, block.project = fresh.code, fresh.sharpen, fresh.project
    if lacks == "φ":
        block.sharpen, block.project = (
            First(width),
            nn.Linear(sizes["code"] * width, width - 1, bias=False),
        )  # type: ignore[assignment]
        nn.init.orthogonal_(block.project.weight)
    trainer._copied = lambda texts: copied[texts].float() * (lacks != "copy")  # type: ignore[method-assign]
    trainer.frozen = frozen * (lacks != "averages")
    if lacks in ROWS:
        trainer.rows.parts = {name: rows for name, rows in parts.items() if name not in ROWS[lacks]}
        left = torch.zeros(len(trainer.rows.texts), dtype=torch.bool)
        left[torch.cat([*trainer.rows.parts.values()])] = True
        trainer.nearest = nearest.masked_fill(~left[nearest.long()], -1)
    trainer._standardise() if lacks == "φ" else trainer._begin(steps=150)
    block.train()
    small = [
        parameter
        for part in (block.code, block.sharpen, block.project)
        for parameter in part.parameters()
    ]
    trainer.optimizer = torch.optim.AdamW(
        [{"params": small, "peak": train.HEAD_LR}], betas=(0.9, 0.98)
    )
    trainer.average = {name: tensor.detach().clone() for name, tensor in block.state_dict().items()}
    for number in range(steps):
        trainer.step(number, number / steps)
    block.load_state_dict(trainer.average)
    trainer.frozen, trainer.nearest, trainer.rows.parts = frozen, nearest, parts
    return block.eval()


def measured(
    block: MeaningBlock, seen: train.Trainer, copied: Tensor, place: dict[str, int], lacks: str
) -> dict:
    """Return the measures of v at `STRENGTH`."""
    e = seen.e.float()
    with torch.no_grad():
        code, topic, z = block.meaning(
            e, seen.frozen.float() * (lacks != "averages"), copied.float() * (lacks != "copy")
        )
    vectors = (
        torch.cat([e, STRENGTH * z, torch.zeros_like(e[:, :1])], dim=1).numpy()
        / (1 + STRENGTH**2) ** 0.5
    )
    asks = np.array([[float(is_yes_no_question(text))] for text in place])
    packed = np.concatenate([vectors, code.numpy(), topic.numpy(), asks], axis=1)
    ends = np.cumsum([vectors.shape[1], code.shape[1], topic.shape[1]])

    def unpacked(rows: np.ndarray) -> Parts:
        v, c, t, a = np.split(rows, ends, axis=1)
        return Parts(vectors=v, code=c, topic=t, asks=a[:, 0] > 0)

    def similarity(first: np.ndarray, second: np.ndarray) -> np.ndarray:
        return score(unpacked(first), unpacked(second))

    results = evaluate_tasks(lambda texts: vectors[[place[text] for text in texts]], TASKS).results
    grades = {f"{one.task} {name}": value for one in results for name, value in one.metrics.items()}
    found = evaluate_tasks(
        lambda texts: packed[[place[text] for text in texts]], TASKS, similarity
    ).results
    reranked = {f"{one.task}, reranked": one.score for one in found}
    return {one.task: one.score for one in results} | grades | reranked


def write(path: Path, runs: Sequence[dict]) -> None:
    """Write the table: a line for what is left out."""
    shown = {
        n: key
        for n, key in MEASURES.items()
        if key in runs[0]["measures"] and not n.startswith("guard") and n not in LEFT_OUT
    }
    shown |= {"Complaints, reranked, %": "complaints, meaning, reranked"}
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["", *shown])
        for lacks in LACKS:
            found = [run["measures"] for run in runs if run["lacks"] == lacks]
            if found:
                label = f"without {lacks}" if lacks else "all parts"
                writer.writerow(
                    [label, *(cell([one[key] for one in found], 1) for key in shown.values())]
                )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("rows", type=Path)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    options = parser.parse_args()
    texts = list(distinct_texts(TASKS))
    seen, seen_copied = opened(
        pa.table({"text": texts, "part": ["measured"] * len(texts), "source": range(len(texts))}),
        LONGEST,
    )
    trainer, copied = opened(sampled(options.rows), 160)
    print(f"{len(trainer.rows.texts)} rows, {len(trainer.rows.tokens)} texts", flush=True)
    record = options.out.with_suffix(".jsonl")
    runs = (
        [json.loads(line) for line in record.read_text().splitlines()] if record.is_file() else []
    )
    for seed in options.seeds:
        for lacks in LACKS:
            if any((run["lacks"], run["seed"]) == (lacks, seed) for run in runs):
                continue
            block = trained(trainer, copied, lacks, options.steps, seed)
            place = {text: i for i, text in enumerate(texts)}
            runs.append(
                {
                    "lacks": lacks,
                    "seed": seed,
                    "measures": measured(block, seen, seen_copied, place, lacks),
                }
            )
            with record.open("a", encoding="utf-8") as file:
                file.write(json.dumps(runs[-1]) + "\n")
            write(options.out, runs)
            print(f"seed {seed}, without {lacks or 'nothing'}", flush=True)


if __name__ == "__main__":
    main()
