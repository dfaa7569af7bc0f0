"""Mining beside sentence-transformers: time and memory for the same number of negatives, and how both grow.

    python benchmarks/mining/mining.py --data FOLDER [--size 100000] [--rounds 3] [--grow 50000 100000 200000 400000]

FOLDER holds `corpus/wiki_sentences_0*.txt.gz`. Vectors of all-MiniLM-L6-v2 are made once, in the
cache of opencse (`OPENCSE_CACHE`), before anything is timed. Contestants, each in a process of its
own, in turn:

- `debiased`: `opencse build` of `debiased_negatives`, two negatives a sentence from random blocks,
written as Parquet;
- `exact`: `hard_negatives` with the whole corpus as `block`: the two nearest of the whole corpus;
- `peer top`: `mine_hard_negatives` on the columns (sentence, the same sentence): the two nearest;
- `peer window`: the same with `min_score=0.25, max_score=0.75, sampling_strategy="random",
range_max=200`;
- `peer faiss`: `peer top` with `use_faiss=True` (a flat index).

Contestants of sentence-transformers get the same vectors instead of running the model. The time of
embedding is measured apart, on `--sample` sentences, since it is linear: opencse embeds each
sentence once, `mine_hard_negatives` embeds the corpus and the queries. Memory is the peak of the
process and of those that it starts, pages of mapped files included. `--grow` runs `debiased` on
these sizes and fits the exponent of growth.
"""

from __future__ import annotations

import argparse
import gzip
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np

sys.path.append(str(Path(__file__).parents[1]))
from peak_memory import PeakMemory

CONTESTANTS = ("debiased", "exact", "peer top", "peer window", "peer faiss")
MODEL = "minilm"


def sentences(data: Path) -> Iterator[str]:
    for path in sorted((data / "corpus").glob("wiki_sentences_*.txt.gz")):
        with gzip.open(path, "rt", encoding="utf-8", newline="\n") as file:
            yield from (line.rstrip("\n") for line in file)


def corpus_file(data: Path, size: int) -> Path:
    """Return the first `size` sentences as a text file in the cache of opencse."""
    from opencse.foundation.cache import cache_root

    path = cache_root() / f"benchmark-{size}.txt"
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.is_file():
        path.write_text(
            "".join(f"{line}\n" for line in islice(sentences(data), size)), encoding="utf-8"
        )
    return path


def prepared(data: Path, size: int, largest: int):
    """The corpus as a text file, and its vectors; those of smaller corpora are the beginning of the largest one's."""
    from opencse.foundation.workers import Local
    from opencse.text.corpus import Corpus
    from opencse.text.mined.vectors import MinedView, find_vectors, open_vectors
    from opencse.text.views.registry import open_sentence_store, texts_hash

    path = corpus_file(data, size)
    store = open_sentence_store(Corpus(path).texts(), texts_hash(Corpus(path).texts())[0])
    spec = MinedView(model=MODEL, precision="bf16")
    embedder = spec.embedder()
    if size < largest:
        _, big = prepared(data, largest, largest)
        vectors = find_vectors(store, embedder)
        for shard, rows in enumerate(vectors.shards):
            if not vectors.has(shard):
                vectors.write(shard, big.take(np.array(rows)))
    return path, open_vectors(store, spec, embedder, Local())


def ours(name: str, path: Path, out: str) -> None:
    from opencse.text.corpus import Corpus
    from opencse.text.views.registry import DebiasedNegatives, HardNegatives, build_views

    spec = (
        DebiasedNegatives(model=MODEL)
        if name == "debiased"
        else HardNegatives(model=MODEL, block=10**9)
    )
    build_views(Corpus(path), {"negative": spec}, out)


def peer(name: str, path: Path, vectors: np.ndarray, model) -> int:
    from datasets import Dataset
    from sentence_transformers.util import mine_hard_negatives

    lines = path.read_text(encoding="utf-8").split("\n")[:-1]
    model.encode_document = model.encode_query = lambda texts, **_: vectors[: len(texts)]
    options: dict = {"use_faiss": name == "peer faiss"}
    if name == "peer window":
        options |= {
            "min_score": 0.25,
            "max_score": 0.75,
            "sampling_strategy": "random",
            "range_max": 200,
        }
    data = Dataset.from_dict({"anchor": lines, "positive": lines})
    mined = mine_hard_negatives(
        data, model, num_negatives=2, output_format="n-tuple", verbose=False, **options
    )
    return len(mined)


def processor_seconds() -> float:
    """Of this process and of those that it waited for."""
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def one(name: str, data: Path, size: int, largest: int) -> dict:
    from sentence_transformers import SentenceTransformer

    from opencse.encoder.names import resolve

    path, vectors = prepared(data, size, largest)
    matrix = vectors.take(np.arange(size)) if name.startswith("peer") else None
    model = SentenceTransformer(resolve(MODEL), device="cpu")
    started_processes = PeakMemory("VmHWM", children=True, seconds=0.1)
    with tempfile.TemporaryDirectory() as out, started_processes as workers:
        start, before = time.perf_counter(), processor_seconds()
        if matrix is None:
            ours(name, path, out)
            rows = size
        else:
            rows = peer(name, path, matrix, model)
        seconds = time.perf_counter() - start
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "seconds": seconds,
        "cpu": processor_seconds() - before,
        "peak": own + workers.peak,
        "worker": workers.largest,
        "rows": rows,
    }


def embedding_rate(name: str, data: Path, count: int) -> dict:
    from sentence_transformers import SentenceTransformer

    from opencse.encoder.embedder import Embedder
    from opencse.encoder.names import resolve

    lines = list(islice(sentences(data), count))
    model = SentenceTransformer(resolve(MODEL), device="cpu")
    model.encode(lines[:64])
    start = time.perf_counter()
    if name == "debiased":
        Embedder(model, precision="bf16", token_budget=1024).encode(lines)
    else:
        model.encode_document(
            lines, batch_size=32, normalize_embeddings=True, convert_to_numpy=True
        )
    return {"rate": count / (time.perf_counter() - start)}


def run(arguments: argparse.Namespace, name: str, *more: str) -> dict:
    command = [sys.executable, __file__, "--data", str(arguments.data), "--one", name, *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = [line for line in done.stdout.splitlines() if line.startswith("RESULT ")]
    if not found:
        return {"failed": (done.stderr.strip().splitlines() or [f"killed ({done.returncode})"])[-1]}
    result = json.loads(found[0].removeprefix("RESULT "))
    print(f"{name} {' '.join(more)}: {result}", file=sys.stderr)
    return result


def compare(arguments: argparse.Namespace) -> None:
    size = str(arguments.size)
    largest = str(max([arguments.size, *arguments.grow]))
    rates: dict[str, list[float]] = {"debiased": [], "peer top": []}
    results: dict[str, list[dict]] = {name: [] for name in arguments.only}
    for _ in range(arguments.rounds):
        for name in arguments.only:
            results[name].append(run(arguments, name, "--size", size, "--largest", largest))
        for name, measured in rates.items():
            measured.append(run(arguments, name, "--sample", str(arguments.sample))["rate"])
    ours_embed, peer_embed = (statistics.median(rates[name]) for name in rates)
    gain = statistics.median(a / b for a, b in zip(*rates.values(), strict=True))
    print(
        f"embedding: opencse bf16 {ours_embed:.0f} sentences/s, encode {peer_embed:.0f}/s: {gain:.1f} times\n"
    )
    heads = [
        "mining, s",
        "`debiased` is faster",
        "processor s",
        "fewer",
        "with embedding, s",
        "faster",
        "peak MiB",
    ]
    print(f"| {arguments.size:,} sentences | {' | '.join(heads)} |")
    print("|" + "---|" * (len(heads) + 1))
    for name, runs in results.items():
        if failed := [r["failed"] for r in runs if "failed" in r]:
            print(f"| {name} | {failed[0]} | | | | |")
            continue
        embed = [arguments.size / r if name in CONTESTANTS[:3] else 2 * arguments.size / r
                 for r in rates["debiased" if name in CONTESTANTS[:3] else "peer top"]]  # fmt: skip
        base = results.get("debiased", runs)
        own = [arguments.size / r for r in rates["debiased"]]
        alone = [r["seconds"] / b["seconds"] for r, b in zip(runs, base, strict=True)]
        cpu = [r["cpu"] / b["cpu"] for r, b in zip(runs, base, strict=True)]
        whole = [
            (r["seconds"] + e) / (b["seconds"] + o)
            for r, e, b, o in zip(runs, embed, base, own, strict=True)
        ]
        seconds, used = (statistics.median(r[key] for r in runs) for key in ("seconds", "cpu"))
        total = statistics.median(r["seconds"] + e for r, e in zip(runs, embed, strict=True))
        spans = [
            f"{statistics.median(x):.1f}x ({min(x):.1f}-{max(x):.1f})" for x in (alone, cpu, whole)
        ]
        cells = [f"{seconds:.1f}", spans[0], f"{used:.1f}", spans[1], f"{total:.0f}", spans[2]]
        print(f"| {name} | {' | '.join(cells)} | {max(r['peak'] for r in runs):,.0f} |")


def grow(arguments: argparse.Namespace) -> None:
    largest = str(max([arguments.size, *arguments.grow]))
    times: dict[int, list[dict]] = {size: [] for size in arguments.grow}
    for _ in range(arguments.rounds):
        for size in arguments.grow:
            times[size].append(
                run(arguments, "debiased", "--size", str(size), "--largest", largest)
            )
    print("\n| sentences | s | processor s | µs a sentence | peak MiB |\n|---|---|---|---|---|")
    for size, runs in times.items():
        seconds, cpu = (statistics.median(r[key] for r in runs) for key in ("seconds", "cpu"))
        peak = max(r["peak"] for r in runs)
        print(
            f"| {size:,} | {seconds:.1f} | {cpu:.1f} | {1e6 * seconds / size:.0f} | {peak:,.0f} |"
        )
    for key in ("seconds", "cpu"):
        values = [statistics.median(r[key] for r in times[size]) for size in arguments.grow]
        exponent = np.polyfit(np.log(arguments.grow), np.log(values), 1)[0]
        print(f"exponent of growth by {key}: {exponent:.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sample", type=int, default=2000)
    parser.add_argument("--grow", type=int, nargs="*", default=[])
    parser.add_argument("--only", nargs="*", default=list(CONTESTANTS), choices=CONTESTANTS)
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--largest", type=int, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        if arguments.largest:
            result = one(arguments.one, arguments.data, arguments.size, arguments.largest)
        else:
            result = embedding_rate(arguments.one, arguments.data, arguments.sample)
        print("RESULT " + json.dumps(result))
        return
    for size in sorted({arguments.size, *arguments.grow}, reverse=True):
        prepared(arguments.data, size, max([arguments.size, *arguments.grow]))
    if arguments.only:
        compare(arguments)
    if arguments.grow:
        grow(arguments)


if __name__ == "__main__":
    main()
