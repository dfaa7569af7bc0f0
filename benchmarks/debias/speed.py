"""Time of reranking a hundred short hits: encoded by `opencse.Reranker`, from stored payloads, and by a cross-encoder.

    python benchmarks/debias/speed.py -o benchmarks/results/debias-rerank-speed.csv [--threads 2]

The cross-encoder has the size of ms-marco-MiniLM-L6-v2 (6 layers, 384 wide) and random weights, which
does not change its time. Each way runs once to warm up; the median of three runs counts. Processor
time is shown as well: other jobs on the machine slow runs down, but don't change it.
"""

from __future__ import annotations

import argparse
import csv
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch
from sentence_transformers import CrossEncoder
from transformers import AutoConfig, AutoModelForSequenceClassification

from opencse import Reranker
from opencse.debias.payload import score
from opencse.evaluation.written_sets import load_development

HITS, RUNS = 100, 3


def milliseconds(work: Callable[[], object]) -> tuple[float, float]:
    """Return the median time of some runs, and that of the processors."""
    work()
    taken, used = [], []
    for _ in range(RUNS):
        begun, before = time.perf_counter(), time.process_time()
        work()
        taken.append(1000 * (time.perf_counter() - begun))
        used.append(1000 * (time.process_time() - before))
    return statistics.median(taken), statistics.median(used)


def cross_encoder(reranker: Reranker, folder: str) -> CrossEncoder:
    """Return a cross-encoder of the same size with random weights."""
    transformer = reranker.model[0].auto_model
    config = AutoConfig.for_model(**transformer.config.to_dict())
    config.num_labels = 1
    config.output_hidden_states = False
    AutoModelForSequenceClassification.from_config(config).save_pretrained(folder)
    reranker.model.tokenizer.save_pretrained(folder)
    return CrossEncoder(folder, device="cpu")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    reranker = Reranker("minilm")
    triplets = load_development()[0].triplets
    query, hits = triplets[0].anchor, [each.positive for each in triplets[:HITS]]
    stored = reranker.parts(hits).int8()
    with tempfile.TemporaryDirectory() as folder:
        reader = cross_encoder(reranker, folder)
        ways: dict[str, Callable[[], object]] = {
            "opencse.Reranker, from texts": lambda: reranker.rank(query, hits),
            "opencse.Reranker, from stored payloads": lambda: score(
                reranker.parts([query]), stored
            ),
            "cross-encoder of MiniLM's size": lambda: reader.rank(query, hits),
        }
        rows = [(name, *milliseconds(work)) for name, work in ways.items()]
    words = sum(len(hit.split()) for hit in hits) / HITS
    with options.out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        head = f"{HITS} hits of {words:.0f} words, {options.threads} threads"
        writer.writerow([head, "median, ms", "processor, ms"])
        for name, median, used in rows:
            writer.writerow([name, f"{median:.0f}", f"{used:.0f}"])
    print(options.out.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
