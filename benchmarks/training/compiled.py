"""What `training.compile=inductor` gives a step of SimCSE on a CPU: kernels, time, recompilations, equal losses.

    python benchmarks/training/compiled.py --data FOLDER [--layers 4] [--steps 40]

FOLDER holds `corpus/wiki_sentences_0*.txt.gz`, whose first sentences are trained on, 64 in a step,
at most 32 tokens each. The transformer has the layers of BERT-base, narrow, so that the number of
kernels matters and not their size. A step is forward pass, loss and backward pass; weights stay the
same. Variants, each in a process of its own with an empty cache of the compiler:

- `packed`: as without compilation, laid out without padding;
- `padded to a few lengths, compiled`: what `training.compile` does;
- `packed, compiled`: the layout of `packed`, compiled: its groups of attention differ from batch to
batch.

Counted are the graphs that are compiled for the first step and for all steps, and the kernels of a
later step, by the profiler: generated ones, and operations of PyTorch that write. Losses are compared
with those of `packed` without dropout. Writes `benchmarks/results/compiled.csv`.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile
from transformers import AutoTokenizer, BertConfig, BertModel

from opencse.encoder import load_encoder
from opencse.encoder.names import resolve
from opencse.encoder.packing import prepare_for_training
from opencse.encoder.prompts import Frame
from opencse.losses import InfoNCELoss, Objective
from opencse.recipes.rows.token_store import TokenSource, open_token_store
from opencse.text.corpus import Corpus
from opencse.training.batches import BatchSampler, Collator, ViewTokens, few_widths
from opencse.training.loss_head import LossHead
from opencse.training.network import Network
from opencse.training.trained_model import compile_layers

sys.path.append(str(Path(__file__).parents[1] / "mining"))
from mining import sentences

RESULT = Path(__file__).parents[1] / "results" / "compiled.csv"
ROWS = 64
LONGEST = 32
VARIANTS = ("packed", "padded to a few lengths, compiled", "packed, compiled")
# Operations that only describe memory.
FREE = (
    "view reshape as_strided transpose t permute slice select expand unsqueeze squeeze detach alias "
    "empty empty_like empty_strided empty_permuted resize_ unbind split chunk narrow unflatten "
    "flatten lift_fresh _unsafe_view _reshape_alias set_ result_type"
).split()


def build(
    folder: Path, data: Path, variant: str, layers: int, dropout: float
) -> tuple[Network, Collator, int]:
    """Return the network, what makes its batches, and the number of rows."""
    tokenizer = AutoTokenizer.from_pretrained(resolve("mini-mlm"))
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=48,
        num_hidden_layers=layers,
        num_attention_heads=12,
        intermediate_size=96,
    )
    torch.manual_seed(0)
    BertModel(config, add_pooling_layer=False).save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    corpus = folder / "corpus.txt"
    corpus.write_text("\n".join(islice(sentences(data), 20_000)), encoding="utf-8")

    encoder = load_encoder(folder / "model", pooling="cls", dropout=dropout)
    padded = variant.startswith("padded")
    prepare_for_training(encoder, packed=not padded)
    if variant.endswith("compiled"):
        compile_layers(encoder[0].auto_model, "inductor")
    store = open_token_store(
        Corpus(corpus), [TokenSource("text")], encoder.tokenizer, LONGEST, progress=False
    )
    view = ViewTokens(0, Frame((2,), (3,)), LONGEST - 2, None)
    widths = few_widths(LONGEST) if padded else ()
    collator = Collator(store, {"anchor": view, "twin": view}, 0, widths=widths)
    network = Network(encoder, LossHead(nn.Identity(), Objective([InfoNCELoss()]), {})).train()
    return network, collator, store.rows


def kernels(trace: profile) -> tuple[int, int]:
    """Return how many kernels of the compiler ran in a trace, and how many other operations that write."""
    generated = 0
    others = 0
    for event in trace.events():
        if event.cpu_children:
            continue
        if "cpp_fused" in event.name or "kernel" in event.name:
            generated += 1
        elif event.name.startswith("aten::") and event.name.removeprefix("aten::") not in FREE:
            others += 1
    return generated, others


def children() -> float:
    """Return the processor seconds of processes that have ended, such as the C++ compiler."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def graphs() -> int:
    """Return the number of graphs compiled so far."""
    return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])


def measure(data: Path, variant: str, layers: int, steps: int, dropout: float) -> dict:
    """Return what some steps take, and their losses."""
    torch._inductor.config.cpp.enable_kernel_profile = True
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        network, collator, rows = build(Path(folder), data, variant, layers, dropout)
        sampler = BatchSampler(rows, ROWS, seed=0)

        batches = [collator(sampler.batch(number), number) for number in range(steps + 1)]

        def step(number: int) -> float:
            loss, _, _ = network(batches[number], number)
            loss.backward()
            network.zero_grad(set_to_none=True)
            return float(loss.detach())

        start = time.process_time()
        losses = [step(0)]
        first = time.process_time() - start + children()
        of_first = graphs()

        seconds = []
        for number in range(1, steps):
            start = time.process_time()
            losses.append(step(number))
            seconds.append(time.process_time() - start)
        with profile(activities=[ProfilerActivity.CPU]) as trace:
            step(steps)
    generated, others = kernels(trace)
    return {
        "first": first,
        "graphs": (of_first, graphs()),
        "milliseconds": 1000 * statistics.median(seconds),
        "generated": generated,
        "others": others,
        "losses": losses,
    }


def in_a_process(options: argparse.Namespace, variant: str, steps: int, dropout: float) -> dict:
    """Measure a variant in a fresh process."""
    command = [sys.executable, __file__, "--data", str(options.data), "--one", variant]
    command += ["--layers", str(options.layers), "--steps", str(steps), "--dropout", str(dropout)]
    with tempfile.TemporaryDirectory() as cache:
        # One thread compiles in processes of its own that end, so that their time can be read.
        variables = {"TORCHINDUCTOR_CACHE_DIR": cache, "TORCHINDUCTOR_COMPILE_THREADS": "1"}
        variables = os.environ | variables
        done = subprocess.run(command, env=variables, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--dropout", type=float, default=0.1, help=argparse.SUPPRESS)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        found = measure(options.data, options.one, options.layers, options.steps, options.dropout)
        print(json.dumps(found))
        return

    table: list[dict[str, object]] = []
    expected: list[float] = []
    for variant in VARIANTS:
        found = in_a_process(options, variant, options.steps, 0.1)
        losses = in_a_process(options, variant, 4, 0.0)["losses"]
        if not expected:
            expected = losses
        difference = max(abs(a - b) for a, b in zip(losses, expected, strict=True))
        line: dict[str, object] = {
            "layout": variant,
            "generated kernels": found["generated"],
            "other kernels": found["others"],
            "processor ms a step": f"{found['milliseconds']:.0f}",
            "first step (processor s)": f"{found['first']:.0f}",
            "graphs after 1 step": found["graphs"][0],
            f"after {options.steps} steps": found["graphs"][1],
            "loss differs by": f"{difference:.0e}",
        }
        table.append(line)
        print(*line.values(), sep="\t", flush=True)
        with RESULT.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
            writer.writeheader()
            writer.writerows(table)


if __name__ == "__main__":
    main()
