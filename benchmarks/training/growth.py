"""Time, memory and disk of everything but forward passes, as the corpus grows.

    python benchmarks/training/growth.py CORPUS [--sizes 100000,1000000,10000000] [--stages NAMES] [--table CSV]

The text is repeated, with a number behind each sentence so that no two are equal, until it has the
size. Each stage is a process of its own with an empty cache; models are loaded before the clock
starts. Mining searches the vectors of 8,192 sentences, repeated with noise, since making them again
is a forward pass; it draws for eight units of 4,096 rows, so its exponent tells whether a row costs
more in a larger corpus. Memory is what the process itself holds, without the pages of mapped files,
which the system takes back when it needs them. The exponent of time is that between a size and the
one before: 0 for constant, 1 for linear growth. The stage `the same on Ray` needs Ray.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import json
import math
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

Work = Callable[[], Any]

HEADER = ["stage", "sentences", "seconds", "exponent", "peak MiB", "disk MiB"]
DISTINCT = 8192  # vectors that are made by a model; mining repeats them
UNITS = 8


def write_corpus(source: Path, size: int, out: Path) -> None:
    lines = [line for line in source.read_text(encoding="utf-8").splitlines() if line.strip()]
    with out.open("w", encoding="utf-8") as file:
        for i, line in enumerate(itertools.islice(itertools.cycle(lines), size)):
            file.write(f"{line} {i}\n")


def sampling(corpus: Path, folder: Path) -> Work:
    from opencse.recipes import load_recipe
    from opencse.recipes.rows.sentence_sample import sample
    from opencse.text.corpus import Corpus

    return lambda: sample(Corpus(corpus), load_recipe("debias").corpus, folder / "sample.parquet")


def sentence_store(corpus: Path, _: Path) -> Work:
    from opencse.text.corpus import Corpus
    from opencse.text.views.registry import open_sentence_store, texts_hash

    return lambda: open_sentence_store(
        Corpus(corpus).texts(), texts_hash(Corpus(corpus).texts())[0]
    )


def training(corpus: Path, folder: Path) -> Work:
    import opencse

    settings = ["training.max_steps=20", "training.batch_size=64"]
    return lambda: opencse.train(
        "simcse",
        corpus,
        backbone="mini-mlm",
        out=folder / "run",
        overrides=settings,
        progress=False,
    )


def building(corpus: Path, folder: Path, *, on_ray: bool = False) -> Work:
    from opencse.foundation.workers import Local, Ray
    from opencse.text.corpus import Corpus
    from opencse.text.views.registry import Deletion, RandomSentence, build_views

    specs = {"shorter": Deletion(), "random": RandomSentence()}
    engine = Ray(processes=2) if on_ray else Local(processes=2)
    return lambda: build_views(Corpus(corpus), specs, folder / "views", engine=engine)


def building_on_ray(corpus: Path, folder: Path) -> Work:
    return building(corpus, folder, on_ray=True)


def mining(corpus: Path, _: Path) -> Work:
    import numpy as np

    from opencse.foundation.numbers import unit_rows
    from opencse.text.corpus import Corpus
    from opencse.text.mined.vectors import find_vectors
    from opencse.text.views.registry import (
        DebiasedNegatives,
        SourceRow,
        open_sentence_store,
        texts_hash,
    )

    sentences = open_sentence_store(Corpus(corpus).texts(), texts_hash(Corpus(corpus).texts())[0])
    spec = DebiasedNegatives(model="minilm")
    embedder = spec.embedder()
    vectors = find_vectors(sentences, embedder)
    distinct = unit_rows(embedder.encode(sentences.range(0, DISTINCT)))
    generator = np.random.default_rng(0)
    for shard, rows in enumerate(vectors.shards):
        noise = generator.normal(scale=0.01, size=(DISTINCT, distinct.shape[1]))
        noisy = unit_rows(distinct + noise).astype(np.float16)
        vectors.write(shard, noisy[np.array(rows) % DISTINCT])
    miner = spec.open(prepared=vectors)
    units = np.linspace(0, len(sentences) // spec.unit - 1, UNITS).astype(int).tolist()

    def draw() -> None:
        for unit in units:
            texts = sentences.range(unit * spec.unit, (unit + 1) * spec.unit)
            miner([SourceRow(id=unit * spec.unit + i, text=text) for i, text in enumerate(texts)])

    return draw


STAGES: dict[str, Callable[[Path, Path], Work]] = {
    "sampling for `debias`": sampling,
    "sentence store": sentence_store,
    "token store, 20 steps of training": training,
    "building two columns": building,
    "the same on Ray": building_on_ray,
    "mining 32,768 rows": mining,
}
"""What prepares each stage; calling the result is what is timed."""


def own_memory(process: str) -> int:
    """Memory of a process without mapped files, in MiB; 0 if it has ended."""
    try:
        status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    except OSError:
        return 0
    return (
        sum(
            int(line.split()[1])
            for line in status.splitlines()
            if line.startswith(("RssAnon", "RssShmem"))
        )
        >> 10
    )


def family() -> list[str]:
    """This process and all that descend from it, as numbers."""
    found = [str(os.getpid())]
    for one in found:
        for children in Path(f"/proc/{one}/task").glob("*/children"):
            try:
                found += children.read_text(encoding="utf-8").split()
            except OSError:
                continue
    return found


@contextmanager
def watched_memory() -> Iterator[list[int]]:
    """Yield a list; at the end it holds the largest sum over this process and those that descend from it, in MiB."""
    peak, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(0.1):
            peak[0] = max(peak[0], sum(own_memory(one) for one in family()))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield peak
    finally:
        done.set()
        thread.join()


def stage(name: str, corpus: Path) -> dict[str, float]:
    """Run one stage in this process."""
    folder = Path(os.environ["OPENCSE_CACHE"])
    work = STAGES[name](corpus, folder)
    with watched_memory() as peak:
        started = time.perf_counter()
        work()
        seconds = time.perf_counter() - started
    disk = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return {"seconds": seconds, "peak": peak[0], "disk": disk / 2**20}


def measured(name: str, corpus: Path) -> dict[str, float]:
    """Run one stage in a process of its own, with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        call = [sys.executable, __file__, str(corpus), "--stage", name]
        environment = os.environ | {"OPENCSE_CACHE": folder}
        done = subprocess.run(call, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))
    return json.loads(line.removeprefix("RESULT "))


def with_exponents(rows: list[list[str]]) -> list[list[str]]:
    """Return the rows by stage and size, each with the exponent of time between the size before and its own."""
    places = list(STAGES)
    ordered = sorted(rows, key=lambda row: (places.index(row[0]), number(row[1])))
    for before, row in itertools.pairwise(ordered):
        if before[0] == row[0]:
            times = math.log(float(row[2]) / float(before[2]))
            row[3] = f"{times / math.log(number(row[1]) / number(before[1])):.2f}"
    return ordered


def number(cell: str) -> int:
    return int(cell.replace(",", ""))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--sizes", default="100000,1000000,10000000")
    parser.add_argument(
        "--stages", nargs="+", choices=STAGES, default=[one for one in STAGES if "Ray" not in one]
    )
    parser.add_argument("--table", type=Path, help="CSV file to which the rows are added")
    parser.add_argument("--stage", choices=STAGES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stage:
        print("RESULT " + json.dumps(stage(options.stage, options.corpus)))
        return
    for size in (int(size) for size in options.sizes.split(",")):
        with tempfile.TemporaryDirectory() as folder:
            corpus = Path(folder) / "corpus.txt"
            write_corpus(options.corpus, size, corpus)
            for name in options.stages:
                found = measured(name, corpus)
                row = [
                    name,
                    f"{size:,}",
                    f"{found['seconds']:.1f}",
                    "",
                    f"{found['peak']:.0f}",
                    f"{found['disk']:.0f}",
                ]
                print("| " + " | ".join(row) + " |", flush=True)
                if options.table:
                    add_row(options.table, row)


def add_row(table: Path, row: list[str]) -> None:
    """Add a row to a table, in place of one of the same stage and size."""
    rows: list[list[str]] = []
    if table.is_file():
        with table.open(encoding="utf-8", newline="") as file:
            rows = [known for known in csv.reader(file) if known != HEADER and known[:2] != row[:2]]
    with table.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([HEADER, *with_exponents([*rows, row])])


if __name__ == "__main__":
    main()
