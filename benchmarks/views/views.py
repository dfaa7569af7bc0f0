"""Speed and memory of building views beside the plain way of doing the same, alternating in one run.

    python benchmarks/views/views.py --data FOLDER [--rounds 3]

FOLDER holds `eval/STS*/test.tsv.gz` and `corpus/wiki_sentences_00.txt.gz`. Each measurement has a
process of its own, whose peak memory is reported. Match error rate is compared with jiwer's
per-pair call; substitution, with a random model of MiniLM's shape, with a plain loop over single
sentences; negation is timed through the builder.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import multiprocessing
import os
import resource
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import islice
from pathlib import Path

SENTENCES = 256  # for substitution
LOOPED_SENTENCES = 32  # for substitution one by one
NEGATED = 8192
LOOPED = 4000  # pairs for the per-pair call


def pairs(data: Path) -> tuple[list[str], list[str]]:
    sides: tuple[list[str], list[str]] = ([], [])
    for path in sorted((data / "eval").glob("STS1*/test.tsv.gz")):
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
            for row in csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE):
                sides[0].append(row["sentence1_senteval"])
                sides[1].append(row["sentence2_senteval"])
    return sides


def sentences(data: Path, count: int) -> list[str]:
    with gzip.open(
        data / "corpus" / "wiki_sentences_00.txt.gz", "rt", encoding="utf-8", newline="\n"
    ) as file:
        return [line.rstrip("\n") for line in islice(file, count)]


def timed(function: Callable[[], object], count: int) -> tuple[float, float]:
    """Return items per second of wall time, and per second of processor time."""
    wall, cpu = time.perf_counter(), time.process_time()
    function()
    return count / (time.perf_counter() - wall), count / (time.process_time() - cpu)


def match_error_rates(data: Path, rounds: int) -> list[str]:
    import jiwer

    from opencse.text.surface import match_error_rate

    out = []
    a, b = pairs(data)
    few_a, few_b = a[:: len(a) // LOOPED], b[:: len(b) // LOOPED]
    many_a, many_b = a * 16, b * 16
    views = sentences(data, LOOPED)
    near = [" ".join([*text.split()[:3], "not", *text.split()[3:]]) for text in views]
    for name, slow, fast in (
        ("STS12-16 pairs", (few_a, few_b), (many_a, many_b)),
        ("a sentence and its negation", (views, near), (views * 40, near * 40)),
    ):
        loop, ours = [], []
        for _ in range(rounds):
            loop.append(
                timed(
                    lambda pair=slow: [jiwer.mer(x, y) for x, y in zip(*pair, strict=True)],
                    len(slow[0]),
                )
            )
            ours.append(timed(lambda pair=fast: match_error_rate(*pair), len(fast[0])))
        ratio = [
            statistics.median(x[k] / y[k] for x, y in zip(ours, loop, strict=True)) for k in (0, 1)
        ]
        out.append(
            f"MER, {name}: jiwer {max(x[0] for x in loop):,.0f} pairs/s, ours {max(x[0] for x in ours):,.0f} pairs/s; "
            f"{ratio[0]:.1f} times as fast by wall time, {ratio[1]:.1f} times by processor time"
        )
    return out


def substitution(data: Path, rounds: int) -> list[str]:
    import torch

    torch.set_num_threads(1)  # as the builder's processes compute
    from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

    from opencse.encoder.names import resolve
    from opencse.text.views.registry import SourceRow, Substitution

    texts = sentences(data, SENTENCES)
    rows = [SourceRow(id=i, text=text) for i, text in enumerate(texts)]
    with tempfile.TemporaryDirectory() as folder:
        torch.manual_seed(0)
        tokenizer = AutoTokenizer.from_pretrained(resolve("minilm"), local_files_only=True)
        shape = {
            "hidden_size": 384,
            "num_hidden_layers": 6,
            "num_attention_heads": 12,
            "intermediate_size": 1536,
        }
        BertForMaskedLM(BertConfig(vocab_size=len(tokenizer), **shape)).save_pretrained(folder)
        tokenizer.save_pretrained(folder)
        few = texts[:: SENTENCES // LOOPED_SENTENCES]
        spec = Substitution(model=folder, fallback="")
        ways = {
            "bf16 where the processor has it": spec,
            "fp32": replace(spec, precision="fp32"),
            "only masked positions": replace(spec, positions="masked"),
        }
        opened = {name: way.open() for name, way in ways.items()}
        loop: list[tuple[float, float]] = []
        speeds: dict[str, list[tuple[float, float]]] = {name: [] for name in ways}
        for _ in range(rounds):
            loop.append(timed(lambda: one_by_one(folder, few, opened["fp32"]), len(few)))
            for name, way in opened.items():
                speeds[name].append(timed(lambda way=way: way(rows), SENTENCES))
        out = [f"substitution, 4 cycles, one by one: {max(loop)[0]:.1f} sentences/s"]
        for name, found in speeds.items():
            ratio = [
                statistics.median(x[k] / y[k] for x, y in zip(found, loop, strict=True))
                for k in (0, 1)
            ]
            out.append(
                f"substitution, {name}: {max(found)[0]:.1f} sentences/s; {ratio[0]:.1f} times as fast as one by one by "
                f"wall time, {ratio[1]:.1f} times by processor time"
            )
        return out


def one_by_one(folder: str, texts: list[str], tags: object) -> list[str]:
    """The plain way: each sentence by itself through transformers' own forward pass, at every cycle."""
    import numpy as np
    import torch
    from transformers import AutoModelForMaskedLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    model = AutoModelForMaskedLM.from_pretrained(folder, local_files_only=True).eval()
    chance = np.random.default_rng(0)
    out = []
    for text in texts:
        for _ in range(4):
            encoded = tokenizer(
                [text], truncation=True, max_length=510, return_offsets_mapping=True
            )
            ids = torch.tensor(encoded["input_ids"])
            (probability,) = tags.mask_probabilities([text], encoded)
            shown = ids.masked_fill(
                torch.from_numpy(chance.random(ids.shape) < probability), tokenizer.mask_token_id
            )
            with torch.inference_mode():
                best = model(input_ids=shown, attention_mask=torch.ones_like(ids)).logits.argmax(-1)
            text = tokenizer.decode(best[0, 1:-1], skip_special_tokens=True)
        out.append(text)
    return out


def negation(data: Path, rounds: int) -> list[str]:
    from opencse.foundation.workers import Local
    from opencse.text.corpus import Corpus
    from opencse.text.views.registry import Negation, SourceRow, build_views

    texts = sentences(data, NEGATED)
    opened = Negation().open()
    share = (
        NEGATED // rounds
    )  # other sentences in each round: the parser remembers what it has just parsed
    rows = [
        [SourceRow(id=i, text=text) for i, text in enumerate(texts[k * share :][:share])]
        for k in range(rounds)
    ]
    alone = max(timed(lambda: opened(few), share) for few in rows)  # noqa: B023
    out = [
        f"negation: {alone[0]:.0f} sentences/s in one process ({alone[1]:.0f} by processor time)"
    ]
    with tempfile.TemporaryDirectory() as folder:
        corpus = Path(folder) / "corpus.txt"
        corpus.write_text("\n".join(texts), encoding="utf-8")
        for workers in (1, os.cpu_count() or 1):
            views = Path(folder) / str(workers)
            begun = time.perf_counter()
            build_views(
                Corpus(corpus), {"negation": Negation()}, views, engine=Local(processes=workers)
            )
            speed = len(texts) / (time.perf_counter() - begun)
            out.append(
                f"negation through the builder, {workers} process(es), start included: {speed:.0f} sentences/s"
            )
    return out


def _child(
    part: Callable[[Path, int], list[str]],
    data: Path,
    rounds: int,
    few: bool,
    queue: multiprocessing.Queue,
) -> None:
    if few:
        globals().update(SENTENCES=16, LOOPED_SENTENCES=4, NEGATED=512, LOOPED=400)
    lines = part(data, rounds)
    peak = sum(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF,)) / 1024
    below = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    queue.put(
        [
            *lines,
            f"  peak memory {peak:.0f} MiB" + (f", of a worker {below:.0f} MiB" if below else ""),
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", required=True, type=Path)
    parser.add_argument("--rounds", type=int, default=3, help="times that each is measured")
    parser.add_argument(
        "--few", action="store_true", help="a fraction of the sentences, to see that it runs"
    )
    parser.add_argument("--only", action="append", choices=("mer", "substitution", "negation"))
    args = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    parts = {"mer": match_error_rates, "substitution": substitution, "negation": negation}
    for part in (parts[name] for name in args.only or parts):
        queue = context.Queue()
        process = context.Process(
            target=_child, args=(part, args.data, args.rounds, args.few, queue)
        )
        process.start()
        print("\n".join(queue.get()), flush=True)
        process.join()


if __name__ == "__main__":
    main()
