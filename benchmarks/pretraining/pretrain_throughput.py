"""Pre-training speed, as a share of the machine's matrix rate.

    OMP_NUM_THREADS=1 python benchmarks/pretraining/pretrain_throughput.py CORPUS [--settings mini-mlm]
        [--set key=value]

Trains on CORPUS (a few thousand sentences are enough) and times whole optimiser steps after the first four: batch
assembly and masking, forward, backward, update. The operations of a step are 6 · P · T, with P the weights in matrices
outside the embeddings and T the real tokens; 12 · layers · width · (sum of squared lengths) for attention; and
6 · width · vocabulary for each guessed token. The matrix rate is that of a bf16 product, 1024 cubed, in that process.
On a CPU both are taken by processor time, since a busy machine makes the wall clock meaningless.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")  # as the command line does

WARM = 4


def matrix_rate(clock: Callable[[], float]) -> float:
    """Operations per second of a bf16 product."""
    import torch

    cuda = torch.cuda.is_available()
    a, b = (torch.randn(1024, 1024, device="cuda" if cuda else "cpu", dtype=torch.bfloat16) for _ in range(2))
    times = []
    for _ in range(200):
        start = clock()
        a @ b
        if cuda:
            torch.cuda.synchronize()
        times.append(clock() - start)
    return 2 * 1024**3 / statistics.median(times)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("--settings", default="mini-mlm")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--set", dest="overrides", action="append", default=[])
    arguments = parser.parse_args()

    import torch

    from opencse.pretraining import pretrain
    from opencse.pretraining.batches import MaskedBatch, MaskingAssembler
    from opencse.runs.loop import TrainingLoop

    batches: list[MaskedBatch] = []
    times: list[float] = []
    clock = time.perf_counter if torch.cuda.is_available() else time.process_time
    step, assemble = TrainingLoop._step, MaskingAssembler.__call__

    def timed(self: TrainingLoop) -> None:
        start = clock()
        step(self)
        times.append(clock() - start)

    def kept(self: MaskingAssembler, rows: object) -> MaskedBatch:
        batches.append(assemble(self, rows))
        return batches[-1]

    TrainingLoop._step, MaskingAssembler.__call__ = timed, kept
    with tempfile.TemporaryDirectory() as folder:
        os.environ["OPENCSE_CACHE"] = folder
        overrides = [f"training.max_steps={arguments.steps}", "training.checkpoint_every=0", "text.held_out=0"]
        overrides += ["model.embeddings=random", *arguments.overrides]
        run = pretrain([arguments.corpus], out=Path(folder) / "out", settings=arguments.settings, overrides=overrides)
        shape, vocabulary = run.settings.model, run.settings.vocabulary.size
    weights = shape.layers * (4 * shape.width**2 + 2 * shape.width * shape.feed_forward)
    own = batches[-arguments.steps :][WARM:]
    operations = [
        6 * weights * batch.tokens
        + sum(12 * shape.layers * shape.width * float((g.mask.sum(1) ** 2).sum()) for g in batch.groups)
        + 6 * shape.width * (vocabulary + shape.width) * batch.predicted
        for batch in own
    ]
    rate, taken = matrix_rate(clock), times[WARM:]
    shares = [o / t / rate for o, t in zip(operations, taken, strict=True)]
    tokens = sum(batch.tokens for batch in own) / sum(taken)
    print(f"{tokens:,.0f} tokens/s, {statistics.median(shares):.0%} of {rate / 1e9:,.0f} Gop/s")


if __name__ == "__main__":
    main()
