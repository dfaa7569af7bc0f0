"""The token store of a large corpus, built by one process and by several: equal bytes, time, memory, disk.

    python benchmarks/training/token_store.py --data FOLDER [--rows 1000000] [--processes 1 2] [--out FILE]
    python benchmarks/training/token_store.py --order 10000000

FOLDER holds `corpus/wiki_sentences_0*.txt.gz`. Its sentences are written to a text file in a
temporary folder, again and again with a number at the end until there are `--rows` of them. Each
number of processes builds the store in a cache of its own, with gloo, from hashing the corpus to the
finished store, with the tokenizer of `mini-mlm` on one thread.

Memory is the peak of what a process allocates, without the pages of mapped files, and disk is the
finished store. The time of a busy machine says little, so the processor seconds of the slowest
process are there, too: what it would take alone. Writes `benchmarks/results/token-store.csv`, and
keeps the lines of other sizes. `--order` times the order of the rows of an epoch instead, and needs
no corpus.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import tempfile
import time
from datetime import timedelta
from itertools import count, islice
from pathlib import Path

import torch.distributed as dist
import torch.multiprocessing as mp
from transformers import AutoTokenizer

from opencse.encoder.names import resolve
from opencse.foundation.cache import Together, cache_root, cache_sizes
from opencse.foundation.files import sha256
from opencse.recipes.rows.token_store import TokenSource, open_token_store
from opencse.text.corpus import Corpus
from opencse.training.batches import BatchSampler

sys.path.append(str(Path(__file__).parents[1] / "mining"))
from logits_memory import free_port
from mining import PeakMemory, sentences
from peak_memory import memory as memory_of_process

RESULT = Path(__file__).parents[1] / "results" / "token-store.csv"
LONGEST = 32


def write_corpus(data: Path, rows: int, path: Path) -> None:
    """Write so many sentences; from the second round on, each ends with the number of the round."""
    written = 0
    with path.open("w", encoding="utf-8") as file:
        for number in count():
            for line in islice(sentences(data), rows - written):
                file.write(f"{line} {number}\n" if number else f"{line}\n")
                written += 1
            if written == rows:
                return


def build(rank: int, processes: int, port: int, path: Path, cache: Path, results: dict) -> None:
    """Build the store in one of the processes, and note what it took."""
    os.environ["OPENCSE_CACHE"] = str(cache)
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    tokenizer = AutoTokenizer.from_pretrained(resolve("mini-mlm"))
    together = Together()
    if processes > 1:
        address = f"tcp://127.0.0.1:{port}"
        dist.init_process_group(
            "gloo",
            init_method=address,
            rank=rank,
            world_size=processes,
            timeout=timedelta(hours=4),
        )
        together = Together(rank, processes, dist.barrier)
        dist.barrier()

    with PeakMemory(seconds=0.1) as memory:
        start = time.perf_counter()
        before = time.process_time()
        store = open_token_store(
            Corpus(path),
            [TokenSource("text")],
            tokenizer,
            LONGEST,
            progress=False,
            together=together,
        )
        seconds = time.perf_counter() - start
        processor = time.process_time() - before
    results[rank] = {
        "rows": store.rows,
        "seconds": seconds,
        "processor": processor,
        "memory": memory.peak,
        "tokens": store.tokens(0),
    }
    if processes > 1:
        dist.destroy_process_group()


def order_of_rows(rows: int) -> tuple[float, float]:
    """Return the seconds and the memory in MiB that the first batch of an epoch takes: the order of all rows."""
    with PeakMemory() as memory:
        before = memory_of_process("self", "RssAnon")
        start = time.perf_counter()
        BatchSampler(rows, 64, seed=0).batch(0)
        seconds = time.perf_counter() - start
    return seconds, memory.peak - before


def contents(cache: Path) -> dict[str, str]:
    """Return the hash of each array of the store in a cache, by name; there is no other store."""
    (folder,) = {path.parent for path in cache.rglob("*.npy")}
    return {path.name: sha256(path) for path in sorted(folder.glob("*.npy"))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--processes", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--order", type=int, help="only time the order of so many rows")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()
    if options.order:
        seconds, memory = order_of_rows(options.order)
        print(f"order of {options.order:,} rows: {seconds:.1f} s, {memory:.0f} MiB")
        return

    table: list[dict[str, object]] = []
    stores: list[dict[str, str]] = []
    with tempfile.TemporaryDirectory(dir=cache_root().parent) as folder, mp.Manager() as manager:
        corpus = Path(folder) / "corpus.txt"
        write_corpus(options.data, options.rows, corpus)
        print(f"corpus: {corpus.stat().st_size / 2**20:,.0f} MiB", flush=True)
        for processes in options.processes:
            cache = Path(folder) / f"cache-{processes}"
            results = manager.dict()
            mp.spawn(
                build,
                (processes, free_port(), corpus, cache, results),
                nprocs=processes,
            )
            os.environ["OPENCSE_CACHE"] = str(cache)
            disk = cache_sizes()["tokens"]
            of_ranks = list(results.values())
            stores.append(contents(cache))
            line: dict[str, object] = {
                "processes": processes,
                "sentences": f"{of_ranks[0]['rows']:,}",
                "tokens": f"{of_ranks[0]['tokens']:,}",
                "seconds": f"{max(r['seconds'] for r in of_ranks):.0f}",
                "processor seconds": f"{max(r['processor'] for r in of_ranks):.0f}",
                "memory (MiB)": f"{max(r['memory'] for r in of_ranks):.0f}",
                "disk (MiB)": f"{disk / 2**20:.0f}",
                "equal": "yes" if stores[-1] == stores[0] else "no",
            }
            table.append(line)
            print(*line.values(), sep="\t", flush=True)

    write_table(table, options.out)


def write_table(table: list[dict[str, object]], path: Path) -> None:
    """Replace the lines of this number of sentences, and keep the others."""
    others: list[dict[str, object]] = []
    if path.is_file():
        with path.open(encoding="utf-8", newline="") as file:
            others.extend(
                line for line in csv.DictReader(file) if line["sentences"] != table[0]["sentences"]
            )
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows([*others, *table])


if __name__ == "__main__":
    main()
