"""How near training steps are to the machine's rate of matrix products, setting by setting.

    python benchmarks/training/step_share.py CORPUS [--rows MIXTURE] [--steps 16] [--rounds 2] [--table CSV]
    python benchmarks/training/step_share.py CORPUS --profile bf16 [--table CSV]

The settings are SimCSE's step at two lengths and, with `--rows`, that of `debias`, each in bf16 and fp32. MIXTURE is
`mixture.parquet` in the folder of a run of `debias`. Each setting trains twice in a process of its own: once with the
clock, from batch assembly to update, and once with PyTorch's counter of the operations in matrix products and
attention, over the same batches. The rate is the best of twelve products of 2048 x 2048 matrices of the same type, in
the same process. `--profile` tells what the time of SimCSE's shorter step is spent on, by PyTorch's profiler.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from train_throughput import matrix_rate, texts

WARM = 4
SETTINGS = {
    "SimCSE, 64 sentences, 32 tokens": ("simcse", 64, 32),
    "SimCSE, 64 sentences, 128 tokens": ("simcse", 64, 128),
    "debias, 24 rows": ("debias", 24, 64),
}
WORK = {
    "matrix products": ("mm", "addmm", "bmm", "baddbmm"),
    "GELU": ("gelu", "gelu_backward"),
    "copies and fills": ("copy_", "fill_", "cat", "index_select", "index_copy", "zero_"),
    "LayerNorm and softmax": (
        "native_layer_norm",
        "native_layer_norm_backward",
        "_softmax",
        "_softmax_backward_data",
    ),
    "sums, products and masks": ("sum", "mul", "mul_", "add", "add_", "bitwise_and", "div", "div_"),
    "update of the weights": ("_fused_adamw_", "linalg_vector_norm"),
}
"""PyTorch's operations by what they are for."""


def train(name: str, precision: str, corpus: Path, steps: int, watch: Callable[[Callable[[], None]], None]) -> None:
    """Train for `steps` steps; each is handed to `watch`, which runs it."""
    import opencse
    from opencse.training.loop import TrainingLoop

    recipe, batch, length = SETTINGS[name]
    original = TrainingLoop._step
    TrainingLoop._step = lambda loop: watch(lambda: original(loop))
    settings = [f"training.batch_size={batch}", f"encoder.max_length={length}", f"training.max_steps={steps}"]
    settings += [f"training.precision={precision}", "training.checkpoint_every=0"]
    try:
        with tempfile.TemporaryDirectory() as folder:
            os.environ["OPENCSE_CACHE"] = folder
            out = Path(folder) / "out"
            opencse.train(recipe, corpus, backbone="minilm", out=out, overrides=settings, progress=False)
    finally:
        TrainingLoop._step = original


def some_rows(mixture: Path, count: int, folder: Path) -> Path:
    """Random rows of the mixture, as many as training reads, so that little is encoded before it."""
    import numpy as np
    import pyarrow.parquet as pq

    table = pq.read_table(mixture)
    chosen = np.random.default_rng(0).permutation(len(table))[:count]
    pq.write_table(table.take(chosen), folder / "rows.parquet")
    return folder / "rows.parquet"


def one(name: str, precision: str, corpus: Path, steps: int) -> dict[str, float]:
    """Seconds and operations of a step, and the rate of matrix products."""
    from torch.utils.flop_counter import FlopCounterMode

    seconds: list[float] = []
    operations: list[int] = []

    def clock(step: Callable[[], None]) -> None:
        started = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - started)

    def count(step: Callable[[], None]) -> None:
        with FlopCounterMode(display=False) as counter:
            step()
        operations.append(counter.get_total_flops())

    train(name, precision, corpus, steps, clock)
    train(name, precision, corpus, steps, count)
    kept = slice(WARM, None)
    return {
        "seconds": statistics.mean(seconds[kept]),
        "operations": statistics.mean(operations[kept]),
        "rate": matrix_rate(precision),
    }


def profiled(precision: str, corpus: Path, steps: int) -> list[list[str]]:
    """Shares of the processor time of SimCSE's shorter step, by kind of operation, the header first."""
    from torch.profiler import ProfilerActivity, profile

    done, profiler = 0, profile(activities=[ProfilerActivity.CPU])

    def watch(step: Callable[[], None]) -> None:
        nonlocal done
        if done == WARM:
            profiler.start()
        step()
        done += 1
        if done == steps:
            profiler.stop()

    train(next(iter(SETTINGS)), precision, corpus, steps, watch)
    spent = {each.key.removeprefix("aten::"): each.self_cpu_time_total for each in profiler.key_averages()}
    whole = sum(spent.values())
    shares = {kind: sum(spent.get(name, 0) for name in names) / whole for kind, names in WORK.items()}
    shares["all else"] = 1 - sum(shares.values())
    return [["", "time, %"], *([kind, f"{100 * share:.0f}"] for kind, share in shares.items())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--rows", type=Path, help="`mixture.parquet` of a run of debias")
    parser.add_argument("--steps", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--table", type=Path, help="write the table here, as CSV")
    parser.add_argument("--profile", choices=["bf16", "fp32"], help="profile the step in this precision instead")
    parser.add_argument("--one", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print("RESULT " + json.dumps(one(*options.one, options.corpus, options.steps)))
        return
    found: dict[tuple[str, str], list[dict[str, float]]] = {}
    os.environ["THP_MEM_ALLOC_ENABLE"] = "1"  # as the command line sets it for itself
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus.txt"
        corpus.write_text("\n".join(texts(str(options.corpus), 64 * (options.steps + 1))), encoding="utf-8")
        if options.profile:
            write_rows(profiled(options.profile, corpus, options.steps), options.table)
            return
        rows = some_rows(options.rows, 24 * (options.steps + 1), Path(folder)) if options.rows else None
        for _ in range(options.rounds):
            for name, (recipe, *_) in SETTINGS.items():
                source = corpus if recipe == "simcse" else rows
                for precision in ("bf16", "fp32") if source else ():
                    result = in_a_process(name, precision, source, options.steps)
                    found.setdefault((name, precision), []).append(result)
                    print(name, precision, result, flush=True)
    write_table(found, options.table)


def in_a_process(name: str, precision: str, source: Path, steps: int) -> dict[str, float]:
    """What `one` returns, from a process of its own."""
    call = [sys.executable, __file__, str(source), "--steps", str(steps), "--one", name, precision]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    lines = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not lines:
        sys.exit(done.stderr)
    return json.loads(lines[0].removeprefix("RESULT "))


def write_table(found: dict[tuple[str, str], list[dict[str, float]]], path: Path | None) -> None:
    """Print and write the means over the rounds, and the range of the share."""
    rows = [["step", "precision", "seconds", "Gflop", "Gflop/s", "matrix product, Gflop/s", "share, %", "range"]]
    for (name, precision), rounds in found.items():
        seconds, operations, rate = (
            statistics.mean(r[key] for r in rounds) for key in ("seconds", "operations", "rate")
        )
        shares = [100 * r["operations"] / r["seconds"] / r["rate"] for r in rounds]
        cells = [f"{seconds:.2f}", f"{operations / 1e9:.0f}", f"{operations / seconds / 1e9:.0f}", f"{rate / 1e9:.0f}"]
        cells += [f"{statistics.mean(shares):.0f}", f"{min(shares):.0f} to {max(shares):.0f}"]
        rows.append([name, precision, *cells])
    write_rows(rows, path)


def write_rows(rows: list[list[str]], path: Path | None) -> None:
    """Print a table, its header first, and write it as CSV."""
    for row in rows:
        print("| " + " | ".join(row) + " |")
    if path is not None:
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)


if __name__ == "__main__":
    main()
