"""What int8 costs and gains: size, speed, and meaning of the exported graph in each precision.

    OMP_NUM_THREADS=1 python benchmarks/export/onnx_precision.py MODEL DATA [--rounds 5] [--out FILE.csv]

DATA holds the STS files. The speed is that of 400 sentences of STS-B dev in batches of 32, sorted by length, on one
thread; the precisions take turns, and the median of the processor seconds counts. Cosines are with the vectors of
`SentenceTransformer.encode`, over all sentences of STS-B dev. A last row is PyTorch's.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime
import torch

from opencse.commands.integrations.onnx import PRECISIONS, OnnxEncoder, export_onnx
from opencse.encoder import load_encoder
from opencse.evaluation import TextEmbeddings, load_sts, score

TIMED = 400


def processor_seconds(encode: Callable[[list[str]], np.ndarray], texts: list[str]) -> float:
    """Processor seconds of one pass."""
    start = time.process_time()
    encode(texts)
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("data")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    model = load_encoder(arguments.model, device="cpu")
    encoders: dict[str, Callable[[list[str]], np.ndarray]] = {}
    sizes: dict[str, float] = {}
    for precision in PRECISIONS:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "onnx"
            _, cosine = export_onnx(arguments.model, out, precision=precision)
            sizes[precision] = sum(file.stat().st_size for file in out.glob("model.onnx*")) / 1e6
            encoders[precision] = OnnxEncoder(out, options).encode
        print(f"{precision}: {sizes[precision]:.1f} MB, least cosine of the export's check {cosine:.4f}")
    encoders["PyTorch, fp32"] = lambda texts: model.encode(texts, show_progress_bar=False)
    sizes["PyTorch, fp32"] = sum(p.numel() * p.element_size() for p in model.parameters()) / 1e6
    [task] = load_sts(arguments.data, tasks=["STS-B"], split="dev")
    texts = list(dict.fromkeys(task.texts()))
    vectors = {name: np.asarray(encode(texts)) for name, encode in encoders.items()}  # also the warm-up
    seconds: dict[str, list[float]] = {name: [] for name in encoders}
    for _ in range(arguments.rounds):
        for name, encode in encoders.items():
            seconds[name].append(processor_seconds(encode, texts[:TIMED]))
    expected = vectors["PyTorch, fp32"]
    rows = [["", "size, MB", "sentences/s", "mean cosine", "least cosine", "STS-B dev"]]
    for name, found in vectors.items():
        norms = np.linalg.norm(found, axis=1) * np.linalg.norm(expected, axis=1)
        cosines = (found * expected).sum(axis=1) / norms
        rows.append([name, f"{sizes[name]:.1f}", f"{TIMED / statistics.median(seconds[name]):.0f}"])
        rows[-1] += [
            f"{cosines.mean():.4f}",
            f"{cosines.min():.4f}",
            f"{score([task], TextEmbeddings(texts, found)).average:.2f}",
        ]
    for row in rows:
        print("\t".join(row))
    if arguments.out is not None:
        with arguments.out.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file).writerows(rows)


if __name__ == "__main__":
    main()
