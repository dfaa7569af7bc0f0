"""Training speed beside sentence-transformers: sentences per second of SimCSE on the same model, text and batch.

    python benchmarks/training/train_throughput.py CORPUS [--model minilm] [--rounds 3] [--steps 24] [--batch 64]
    python benchmarks/training/train_throughput.py CORPUS --random bert-base --batch 64 512 --steps 104   # on a GPU

Each contestant trains in a process of its own, in turn, so that a noisy machine is noisy for all;
the ratios are taken round by round and their median is printed. Times count whole optimiser steps
(batch assembly, forward, backward, update) after the first four, from end to end; set-up is left
out, and a GPU is waited for only at both ends. Contestants: `opencse` in bf16, `opencse fp32`, and
`SentenceTransformerTrainer` with `MultipleNegativesRankingLoss` on the columns (sentence, the same
sentence), with its defaults (fp32) and with `bf16=True`. With `--only`, also large batches in
little memory, in bf16 and 32 texts at a time: `opencse in parts` (`training.micro_batch`), `trainer
bf16 in parts` (`CachedMultipleNegativesRankingLoss`).

The share of the machine's matrix rate counts 6 · P · T operations a step, with P the weights in
matrices outside the embeddings and T the tokens without padding in both views, plus 12 · layers ·
width · sum of squared lengths for attention; the rate is that of a 2048 x 2048 matrix product (8192
x 8192 on a GPU) in the same process, in bf16 and in the contestant's own precision. Where PyTorch
finds a GPU, everything runs there. `--random` trains a BERT of that size with random weights and
minilm's vocabulary, which is enough to measure speed.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LENGTH, WARM, PART = 32, 4, 32
CONTESTANTS = ("opencse", "opencse fp32", "trainer", "trainer bf16")
IN_PARTS = ("opencse in parts", "trainer bf16 in parts")
SIZES = {
    "bert-base": (768, 12, 12, 3072),
    "tiny": (32, 2, 2, 64),
}  # width, layers, heads, inner width


def texts(corpus: str, count: int) -> list[str]:
    from itertools import islice

    from opencse.text.corpus import Corpus

    return list(islice(Corpus(corpus).texts(), count))


def random_model(size: str, folder: Path) -> str:
    """A BERT with random weights in a folder."""
    from transformers import AutoTokenizer, BertConfig, BertModel

    from opencse.encoder.names import resolve

    width, layers, heads, inner = SIZES[size]
    tokenizer = AutoTokenizer.from_pretrained(resolve("minilm"))
    shape = {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads}
    words = {"vocab_size": len(tokenizer), "pad_token_id": tokenizer.pad_token_id}
    config = BertConfig(**shape, **words, intermediate_size=inner)
    BertModel(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder)


class Stopwatch:
    """Seconds from the end of the warm-up to the end of the last step."""

    def __init__(self, steps: int) -> None:
        self.steps, self.done, self.stamps = steps, 0, []

    def step_done(self) -> None:
        """Count a step."""
        self.done += 1
        if self.done in (WARM, self.steps):
            if _cuda():
                import torch

                torch.cuda.synchronize()  # the steps were only launched
            self.stamps.append(time.perf_counter())

    @property
    def seconds(self) -> float:
        """Seconds between both ends."""
        return self.stamps[1] - self.stamps[0]


def train_opencse(
    model: str, lines: list[str], steps: int, precision: str, batch: int, parts: bool
) -> float:
    import opencse
    from opencse.training.callbacks import ActiveRun
    from opencse.training.loop import TrainingLoop

    watch = Stopwatch(steps)
    original = TrainingLoop.step

    def timed(self: TrainingLoop, active: ActiveRun) -> object:
        values = original(self, active)
        watch.step_done()
        return values

    TrainingLoop.step = timed
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus.txt"
        corpus.write_text("\n".join(lines), encoding="utf-8")
        os.environ["OPENCSE_CACHE"] = folder
        settings = [
            f"training.batch_size={batch}",
            f"encoder.max_length={LENGTH}",
            f"training.max_steps={steps}",
        ]
        settings += [f"training.precision={precision}", "training.checkpoint_every=0"]
        settings += [f"training.micro_batch={PART}"] if parts else []
        out = Path(folder) / "out"
        opencse.train("simcse", corpus, backbone=model, out=out, overrides=settings, progress=False)
    return watch.seconds


def train_peer(
    model: str, lines: list[str], steps: int, bf16: bool, batch: int, parts: bool
) -> float:
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import (
        CachedMultipleNegativesRankingLoss,
        MultipleNegativesRankingLoss,
    )
    from transformers import TrainerCallback

    from opencse.encoder.names import resolve

    encoder = SentenceTransformer(resolve(model), device="cpu" if not _cuda() else "cuda")
    encoder.max_seq_length = LENGTH
    watch = Stopwatch(steps)

    class Clock(TrainerCallback):
        def on_step_end(self, *_, **__):
            watch.step_done()

    with tempfile.TemporaryDirectory() as folder:
        arguments = SentenceTransformerTrainingArguments(
            output_dir=folder,
            per_device_train_batch_size=batch,
            max_steps=steps,
            learning_rate=1e-5,
            warmup_steps=0,
            bf16=bf16,
            use_cpu=not _cuda(),
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        )
        data = Dataset.from_list([{"sentence1": line, "sentence2": line} for line in lines])
        cached = (
            CachedMultipleNegativesRankingLoss(encoder, mini_batch_size=PART) if parts else None
        )
        loss = cached or MultipleNegativesRankingLoss(encoder)
        SentenceTransformerTrainer(encoder, arguments, data, loss=loss, callbacks=[Clock()]).train()
    return watch.seconds


def _cuda() -> bool:
    import torch

    return torch.cuda.is_available()


def _peak_mib(process: float) -> float:
    """Peak memory of the GPU, or that of the process where there is none."""
    import torch

    return torch.cuda.max_memory_allocated() / 2**20 if _cuda() else process


def matrix_rate(precision: str) -> float:
    """Operations per second of a product of two square matrices."""
    import torch

    device, kind = (
        "cuda" if _cuda() else "cpu",
        {"bf16": torch.bfloat16, "fp32": torch.float32}[precision],
    )
    size = 8192 if _cuda() else 2048
    a, b = (torch.randn(size, size, device=device, dtype=kind) for _ in range(2))
    best = float("inf")
    for _ in range(12):
        start = time.perf_counter()
        a @ b
        if _cuda():
            torch.cuda.synchronize()
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best


def operations(model: str, lines: list[str], batch: int) -> float:
    """Mean operations of a step of `batch` sentences in two views."""
    from opencse.encoder import load_encoder

    encoder = load_encoder(model, pooling="mean")  # a model with random weights has none
    config = encoder[0].auto_model.config
    weights = sum(
        p.numel()
        for n, p in encoder.named_parameters()
        if p.ndim == 2 and "embeddings" not in n and "pooler" not in n
    )
    ids = encoder.tokenizer(lines, truncation=True, max_length=LENGTH)["input_ids"]
    lengths = [len(i) for i in ids]
    per_sentence = 6 * weights * statistics.mean(lengths)
    squares = statistics.mean(n * n for n in lengths)
    return 2 * batch * (per_sentence + 12 * config.num_hidden_layers * config.hidden_size * squares)


def one(name: str, corpus: str, model: str, steps: int, batch: int) -> None:
    precision = "fp32" if name in ("opencse fp32", "trainer") else "bf16"
    lines = texts(corpus, steps * batch + batch)
    if name.startswith("opencse"):
        seconds = train_opencse(model, lines, steps, precision, batch, name in IN_PARTS)
    else:
        seconds = train_peer(model, lines, steps, "bf16" in name, batch, name in IN_PARTS)
    kept = steps - WARM
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rate, own_rate = matrix_rate("bf16"), matrix_rate(precision)
    done = operations(model, lines, batch) * kept / seconds
    result = {
        "sentences_per_second": batch * kept / seconds,
        "peak_mib": _peak_mib(peak),
        "matrix_share": done / rate,
        "own_share": done / own_rate,
        "matrix_tflops": rate / 1e12,
    }
    print("RESULT " + json.dumps(result))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus")
    parser.add_argument("--model", default="minilm")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--batch", type=int, nargs="+", default=[64])
    parser.add_argument(
        "--random", choices=SIZES, help="size of a model with random weights, in place of --model"
    )
    parser.add_argument("--only", nargs="*", default=CONTESTANTS, choices=(*CONTESTANTS, *IN_PARTS))
    parser.add_argument("--one", choices=(*CONTESTANTS, *IN_PARTS), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.steps <= WARM:
        parser.error(f"--steps must be more than the {WARM} of the warm-up")
    if arguments.one:
        return one(
            arguments.one, arguments.corpus, arguments.model, arguments.steps, arguments.batch[0]
        )
    with tempfile.TemporaryDirectory() as folder:
        model = (
            random_model(arguments.random, Path(folder) / arguments.random)
            if arguments.random
            else arguments.model
        )
        for batch in arguments.batch:
            print_table(compare(arguments, model, batch), batch)
    return None


def compare(arguments: argparse.Namespace, model: str, batch: int) -> dict[str, list[dict]]:
    """The results of each round, by contestant."""
    results: dict[str, list[dict]] = {name: [] for name in arguments.only}
    for round_ in range(arguments.rounds):
        for name in arguments.only:
            command = [
                sys.executable,
                __file__,
                arguments.corpus,
                "--one",
                name,
                "--batch",
                str(batch),
            ]
            command += ["--model", model, "--steps", str(arguments.steps)]
            # What the command line sets for itself, and a user of the peer does not.
            more = {"THP_MEM_ALLOC_ENABLE": "1"} if name.startswith("opencse") else {}
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, env=os.environ | more
            )
            found = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
            if not found:
                sys.exit(done.stderr)
            results[name].append(json.loads(found[0].removeprefix("RESULT ")))
            speed = results[name][-1]["sentences_per_second"]
            print(f"batch {batch}, round {round_ + 1}: {name}: {speed:.1f}/s", file=sys.stderr)
    return results


def print_table(results: dict[str, list[dict]], batch: int) -> None:
    head = "sentences/s | opencse is | share of bf16 rate | of its own | peak memory"
    print(f"| {batch} sentences, {LENGTH} tokens | {head} |")
    print("|---|---|---|---|---|---|")
    for name, runs in results.items():
        ours = results.get("opencse", runs)
        ratios = [
            a["sentences_per_second"] / b["sentences_per_second"]
            for a, b in zip(ours, runs, strict=True)
        ]
        speed = statistics.median(r["sentences_per_second"] for r in runs)
        share = statistics.median(r["matrix_share"] for r in runs)
        own = statistics.median(r["own_share"] for r in runs)
        peak = max(r["peak_mib"] for r in runs)
        span = f"{statistics.median(ratios):.2f}x ({min(ratios):.2f}-{max(ratios):.2f})"
        print(f"| {name} | {speed:.1f} | {span} | {share:.0%} | {own:.0%} | {peak:.0f} MiB |")


if __name__ == "__main__":
    main()
