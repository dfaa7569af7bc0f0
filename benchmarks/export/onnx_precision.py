"""Size, speed and quality of models in PyTorch and as exported graphs, in fp32 and int8.

    OMP_NUM_THREADS=1 python benchmarks/export/onnx_precision.py DATA MODEL[=NAME]... [--out CSV]
    [--figure SVG]

DATA holds the STS files. The speed is that of 400 sentences of STS-B dev in batches of 32, sorted
by length, on one thread; the ways take turns, and the median of the processor seconds counts.
Cosines are with the vectors of `SentenceTransformer.encode`, over all texts. Meaning is the mean of
the three development sets that come with opencse. The figure shows meaning against speed.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
import torch

from opencse.commands.integrations.onnx import PRECISIONS, OnnxEncoder, export_onnx
from opencse.encoder import load_encoder
from opencse.evaluation import Encode, Task, TextEmbeddings, distinct_texts, load_sts, score_tasks
from opencse.evaluation.written_sets import load_development
from opencse.foundation.errors import OpencseError

TIMED = 400


def processor_seconds(encode: Encode, texts: Sequence[str]) -> float:
    """Processor seconds of one pass."""
    start = time.process_time()
    encode(texts)
    return time.process_time() - start


Row = dict[str, str | float]


def measure(model: str, name: str, tasks: Sequence[Task], rounds: int) -> list[Row]:
    """Return a row for PyTorch and one for each precision of the graph."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    loaded = load_encoder(model, device="cpu")
    encoders: dict[str, Encode] = {
        "PyTorch": lambda texts: loaded.encode(list(texts), show_progress_bar=False)
    }
    sizes = {"PyTorch": sum(p.numel() * p.element_size() for p in loaded.parameters()) / 1e6}
    for precision in PRECISIONS:
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "onnx"
            try:
                export_onnx(model, out, precision=precision)
            except OpencseError as error:  # the export's own check: the vectors differ too much
                print(error, flush=True)
                continue
            sizes[f"ONNX, {precision}"] = (
                sum(file.stat().st_size for file in out.glob("model.onnx*")) / 1e6
            )
            encoders[f"ONNX, {precision}"] = OnnxEncoder(out, options).encode
    texts = distinct_texts(tasks)
    timed = list(dict.fromkeys(tasks[0].texts()))[:TIMED]
    vectors = {
        way: np.asarray(encode(texts)) for way, encode in encoders.items()
    }  # also the warm-up
    seconds: dict[str, list[float]] = {way: [] for way in encoders}
    for _ in range(rounds):
        for way, encode in encoders.items():
            seconds[way].append(processor_seconds(encode, timed))
    expected = vectors["PyTorch"]
    rows = []
    for way, found in vectors.items():
        norms = np.linalg.norm(found, axis=1) * np.linalg.norm(expected, axis=1)
        cosines = (found * expected).sum(axis=1) / norms
        scores = [
            float(result.score or 0.0)
            for result in score_tasks(tasks, TextEmbeddings(texts, found)).results
        ]
        row: Row = {"": f"{name}, {way}", "size, MB": f"{sizes[way]:.0f}"}
        row |= {"sentences/s": f"{TIMED / statistics.median(seconds[way]):.0f}"}
        row |= {"mean cosine": f"{cosines.mean():.4f}", "least cosine": f"{cosines.min():.4f}"}
        rows.append(
            row
            | {"STS-B dev": f"{scores[0]:.2f}", "meaning, %": f"{statistics.mean(scores[1:]):.1f}"}
        )
    return rows


def draw(rows: Sequence[Row], path: Path) -> None:
    """Write meaning against speed; the ways of one model are joined."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FixedLocator, NullLocator

    axes = (figure := Figure(figsize=(6.4, 3.6), layout="constrained")).subplots()
    models = dict.fromkeys(str(row[""]).partition(", ")[0] for row in rows)
    for model, marker in zip(models, "osD^v", strict=False):
        own = [
            (float(row["sentences/s"]), row)
            for row in rows
            if str(row[""]).startswith(f"{model}, ")
        ]
        own.sort(key=lambda pair: pair[0])
        axes.plot(
            [x for x, _ in own],
            [float(row["meaning, %"]) for _, row in own],
            marker=marker,
            label=model,
        )
        for x, row in own:
            way = str(row[""]).partition(", ")[2]
            place, side = ((0, -12), "right") if way == "PyTorch" else ((0, 6), "center")
            at = (x, float(row["meaning, %"]))
            axes.annotate(way, at, place, textcoords="offset points", fontsize=7, ha=side)
    axes.set(
        xlabel="sentences per second, one thread", ylabel="same meaning nearer, %", xscale="log"
    )
    axes.xaxis.set_major_locator(FixedLocator([25, 50, 100, 200, 400, 800]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.margins(0.12)
    axes.legend(fontsize=8)
    figure.savefig(path)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data")
    parser.add_argument("models", nargs="+", metavar="MODEL[=NAME]")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--figure", type=Path)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    tasks: list[Task] = [
        *load_sts(arguments.data, tasks=["STS-B"], split="dev"),
        *load_development(),
    ]
    rows: list[Row] = []
    for path, _, name in (each.partition("=") for each in arguments.models):
        measured = measure(path, name or path, tasks, arguments.rounds)
        for row in measured:
            print(*row.values(), sep="\t", flush=True)
        rows += measured
    if arguments.out is not None:
        with arguments.out.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, rows[0].keys())
            writer.writeheader()
            writer.writerows(rows)
    if arguments.figure is not None:
        draw(rows, arguments.figure)


if __name__ == "__main__":
    main()
