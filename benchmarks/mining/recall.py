"""Approximate against exact search of `hard_negatives`: recall, cosine, time and memory.

    python benchmarks/mining/recall.py --data FOLDER [--size 20000] [--rows 2048] [--probes 4 8 16 32 64 128]
        [--static] [--faiss] [--out FILE]

FOLDER holds `corpus/wiki_sentences_0*.txt.gz`. The vectors of all-MiniLM-L6-v2 are made once, in the
cache of opencse, before anything is timed. A million of them takes hours on one core; `--static`
makes them with a static model instead, in which a word piece has the vector that MiniLM gives to it
alone, weighted by its frequency (SIF, Arora et al., 2017), and a sentence has the mean of its word
pieces.

`--rows` sentences look for their two and their ten nearest: exactly, in a block of the whole corpus;
approximately, in the clusters of an inverted file whose centers are nearest (`probes`); and, as a
build does by default, in a random block of 10,000 sentences. Recall is the share of the exactly
nearest that the approximate search finds. `--faiss` searches with FAISS, too (`pip install
faiss-cpu`): in an `IndexIVFScalarQuantizer` of 16 bits with the same clusters, in memory, and with as
many of them as the last of `--probes`.

Each search runs in a process of its own, on one thread. Time is that of its processor, which other
jobs change little. Memory is the peak of what the process allocates, Python and its packages
included, without the pages of mapped files, which the system may drop. Writes
`benchmarks/results/mining-recall.csv`, or `--out`.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import time
from collections import Counter
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import numpy as np
import torch
from mining import PeakMemory, corpus_file, prepared, sentences
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import StaticEmbedding

from opencse.encoder.embedder import Embedder
from opencse.encoder.names import resolve
from opencse.foundation.cache import cache_root
from opencse.foundation.numbers import unit_rows
from opencse.foundation.workers import Local, one_thread
from opencse.text.corpus import Corpus
from opencse.text.mined.approximate import build_index, open_index, search
from opencse.text.mined.candidate_pools import CandidatePools, nearest, random_block, without_copies
from opencse.text.mined.vectors import Vectors, find_vectors
from opencse.text.views.registry import open_sentence_store, texts_hash

RESULT = Path(__file__).parents[1] / "results" / "mining-recall.csv"
DEEP = 10
EVERYTHING = (-np.inf, np.inf)
# Sentences that the word pieces are counted in, and the constant of SIF.
COUNTED = 200_000
SIF = 1e-3


def static_model(data: Path) -> Path:
    """Return the folder of the static model; make it unless it is in the cache."""
    folder = cache_root() / "benchmark-static"
    if folder.is_dir():
        return folder
    teacher = SentenceTransformer(resolve("minilm"), device="cpu")
    tokenizer = teacher.tokenizer.backend_tokenizer
    tokenizer.no_truncation()
    tokenizer.no_padding()

    vocabulary = tokenizer.get_vocab(with_added_tokens=True)
    pieces = sorted(vocabulary, key=vocabulary.__getitem__)
    vectors = torch.from_numpy(teacher.encode(pieces, batch_size=256))
    vectors = vectors - vectors.mean(dim=0)

    counts: Counter[int] = Counter()
    lines = islice(sentences(data), COUNTED)
    for encoding in tokenizer.encode_batch(list(lines), add_special_tokens=False):
        counts.update(encoding.ids)
    shares = torch.tensor([counts[i] for i in range(len(pieces))]) / counts.total()
    weights = SIF / (SIF + shares)

    static = StaticEmbedding(tokenizer, embedding_weights=(vectors * weights[:, None]).numpy())
    SentenceTransformer(modules=[static], device="cpu").save(str(folder))
    return folder


def static_vectors(data: Path, size: int) -> Vectors:
    """Return the vectors of a corpus by the static model; they are made unless they are in the cache."""
    path = corpus_file(data, size)
    store = open_sentence_store(Corpus(path).texts(), texts_hash(Corpus(path).texts())[0])
    embedder = Embedder(SentenceTransformer(str(static_model(data)), device="cpu"))
    vectors = find_vectors(store, embedder)
    for shard, numbers in enumerate(vectors.shards):
        if not vectors.has(shard):
            chunk = store.range(numbers.start, numbers.stop)
            vectors.write(shard, unit_rows(embedder.encode(chunk)))
    return vectors


Search = Callable[[Vectors, np.ndarray], object]


def exact_search(vectors: Vectors, rows: np.ndarray) -> CandidatePools:
    keys = vectors.sentences.keys
    candidates = without_copies(np.arange(len(keys)), keys)
    return nearest(rows, candidates, keys, vectors.take, size=DEEP, window=EVERYTHING)[0]


def block_search(vectors: Vectors, rows: np.ndarray) -> CandidatePools:
    keys = vectors.sentences.keys
    candidates = without_copies(random_block(len(keys), 10_000, seed=0), keys)
    return nearest(rows, candidates, keys, vectors.take, size=DEEP, window=EVERYTHING)[0]


class ApproximateSearch:
    """The search of so many clusters."""

    def __init__(self, probes: int) -> None:
        self.probes = probes

    def __call__(self, vectors: Vectors, rows: np.ndarray) -> CandidatePools:
        """Search for the nearest of the rows."""
        index = open_index(vectors)
        return search(index, rows, vectors, size=DEEP, window=EVERYTHING, probes=self.probes)[0]


class FaissSearch:
    """The search of so many clusters by FAISS, of which only the search itself is timed."""

    def __init__(self, probes: int) -> None:
        self.probes = probes

    def __call__(self, vectors: Vectors, rows: np.ndarray) -> CandidatePools:
        """Search for the nearest of the rows."""
        import faiss

        faiss.omp_set_num_threads(1)
        ours = open_index(vectors)
        centers = faiss.IndexFlatIP(vectors.dimension)
        centers.add(ours.centers)
        index = faiss.IndexIVFScalarQuantizer(
            centers,
            vectors.dimension,
            ours.count,
            faiss.ScalarQuantizer.QT_fp16,
            faiss.METRIC_INNER_PRODUCT,
        )
        index.train(ours.centers)
        for block in ours.blocks:
            index.add_with_ids(np.asarray(block.vectors, dtype=np.float32), np.array(block.numbers))
        index.nprobe = self.probes

        before = time.process_time()
        # One more than the nearest: the sentence itself, or its first copy.
        cosine, ids = index.search(vectors.take(rows), DEEP + 1)
        self.seconds = time.process_time() - before
        keys = vectors.sentences.keys
        other = (ids >= 0) & (keys[ids] != keys[rows][:, None])
        order = np.argsort(~other, axis=1, kind="stable")[:, :DEEP]
        return CandidatePools(ids=ids, cosine=cosine).at(order)


def index_size(vectors: Vectors, rows: np.ndarray) -> int:
    """Build the index, and return its number of clusters."""
    build_index(vectors, Local(processes=1))
    return open_index(vectors).count


def _measured(pipe, task: Search, vectors: Vectors, rows: np.ndarray) -> None:
    with one_thread(), PeakMemory() as memory:
        before = time.process_time()
        found = task(vectors, rows)
        seconds = getattr(task, "seconds", time.process_time() - before)
    pipe.send((found, seconds, memory.peak))


def measured(task: Search, vectors: Vectors, rows: np.ndarray) -> tuple:
    """Return what a task gives in a fresh process, its processor seconds, and the peak of its memory in MiB."""
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_measured, args=(sender, task, vectors, rows))
    process.start()
    sender.close()
    result = receiver.recv()
    process.join()
    return result


def recall(found: CandidatePools, exact: CandidatePools, count: int) -> float:
    """Return the share of the exact `count` nearest among those that were found."""
    same = found.ids[:, :count, None] == exact.ids[:, None, :count]
    return float((same & (found.ids[:, :count, None] >= 0)).any(axis=1).mean())


def row(
    name: str, found: CandidatePools, exact: CandidatePools, seconds: float, memory: float
) -> dict[str, object]:
    return {
        "search": name,
        "recall of 2": f"{recall(found, exact, 2):.3f}",
        "recall of 10": f"{recall(found, exact, DEEP):.3f}",
        "mean cosine of 2": f"{found.cosine[:, :2].mean():.3f}",
        "processor seconds": f"{seconds:.2f}",
        "memory (MiB)": f"{memory:.0f}",
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--size", type=int, default=20_000)
    parser.add_argument("--rows", type=int, default=2048)
    parser.add_argument("--probes", type=int, nargs="+", default=[4, 8, 16, 32, 64, 128])
    parser.add_argument("--static", action="store_true", help="vectors of a static model")
    parser.add_argument("--faiss", action="store_true", help="also search with FAISS")
    parser.add_argument("--out", type=Path, default=RESULT)
    options = parser.parse_args()

    start = time.perf_counter()
    if options.static:
        vectors = static_vectors(options.data, options.size)
    else:
        _, vectors = prepared(options.data, options.size, options.size)
    print(f"vectors made or found in {time.perf_counter() - start:.0f} s", flush=True)
    keys = vectors.sentences.keys
    rows = np.sort(random_block(len(keys), options.rows, seed=1))

    clusters, built, memory = measured(index_size, vectors, rows)
    print(f"index built or opened in {built:.1f} processor seconds, {memory:.0f} MiB", flush=True)

    exact, seconds, memory = measured(exact_search, vectors, rows)
    table = [row("exact", exact, exact, seconds, memory)]
    print(*table[-1].values(), sep="\t", flush=True)

    found, seconds, memory = measured(block_search, vectors, rows)
    table.append(row("random block of 10,000", found, exact, seconds, memory))
    print(*table[-1].values(), sep="\t", flush=True)

    for probes in options.probes:
        found, seconds, memory = measured(ApproximateSearch(probes), vectors, rows)
        name = f"approximate, {probes} of {clusters:,} clusters"
        table.append(row(name, found, exact, seconds, memory))
        print(*table[-1].values(), sep="\t", flush=True)

    if options.faiss:
        probes = options.probes[-1]
        found, seconds, memory = measured(FaissSearch(probes), vectors, rows)
        name = f"FAISS, {probes} of {clusters:,} clusters"
        table.append(row(name, found, exact, seconds, memory))
        print(*table[-1].values(), sep="\t", flush=True)

    with options.out.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(table[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(table)
    print(f"{len(keys):,} sentences, {len(rows):,} rows")


if __name__ == "__main__":
    main()
