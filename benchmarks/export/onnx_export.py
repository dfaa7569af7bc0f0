"""An exported model beside the model it was exported from: sizes, vectors, encode time.

    OMP_NUM_THREADS=1 python benchmarks/export/onnx_export.py MODEL [--rounds 5] [--texts 200]

The texts are the first of the sample sentences that come with opencse. Both encode them in batches
of 32, sorted by length, on one thread, and take turns; the ratio is the median of the rounds'
ratios. On a busy machine trust the processor seconds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import torch

from opencse.commands.integrations.onnx import OnnxEncoder, export_onnx
from opencse.encoder import load_encoder
from opencse.text.corpus import demo_path


def timed(encode: Callable[[list[str]], np.ndarray], texts: list[str]) -> tuple[float, float]:
    """Wall and processor seconds of one pass."""
    wall, cpu = time.perf_counter(), time.process_time()
    encode(texts)
    return time.perf_counter() - wall, time.process_time() - cpu


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--texts", type=int, default=200)
    arguments = parser.parse_args()
    texts = (
        demo_path("demo", "sentences.txt")
        .read_text(encoding="utf-8")
        .splitlines()[: arguments.texts]
    )
    torch.set_num_threads(1)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    with tempfile.TemporaryDirectory() as folder:
        wall, cpu = time.perf_counter(), time.process_time()
        export_onnx(arguments.model, Path(folder) / "onnx")
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        size = sum(file.stat().st_size for file in (Path(folder) / "onnx").glob("model.onnx*"))
        print(f"export {wall:.0f} s, {cpu:.0f} processor seconds; {size / 1e6:.1f} MB", flush=True)
        exported = OnnxEncoder(Path(folder) / "onnx", options)
    model = load_encoder(arguments.model)
    print(
        f"weights in PyTorch {sum(p.numel() * p.element_size() for p in model.parameters()) / 1e6:.1f} MB"
    )
    difference = np.abs(exported.encode(texts) - model.encode(texts)).max()  # also the warm-up
    print(f"{len(texts)} texts, largest difference of a coordinate {difference:.1e}", flush=True)
    rounds = [
        (timed(model.encode, texts), timed(exported.encode, texts)) for _ in range(arguments.rounds)
    ]
    for i, name in enumerate(("wall", "processor")):
        ratio = statistics.median(theirs[i] / ours[i] for theirs, ours in rounds)
        ours = statistics.median(ours[i] for _, ours in rounds)
        print(f"{name}: onnxruntime {ratio:.2f} times as fast ({len(texts) / ours:.0f} texts/s)")


if __name__ == "__main__":
    main()
