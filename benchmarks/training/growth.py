"""Time, memory and disk of everything but forward passes, as the corpus grows.

    python benchmarks/training/growth.py CORPUS [--sizes 10000,100000,1000000] [--rows 24000]

The text is repeated, with a number behind each sentence so that no two are equal, until it has the size. Each stage is
a process of its own with an empty cache: sampling for `debias`, the store of sentences that mining and building read,
and the token store. The exponent is that of the last two sizes: 0 for constant, 1 for linear growth. Time on a machine
that does other work as well is worth nothing; memory and disk are.
"""

from __future__ import annotations

import argparse
import itertools
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

STAGES = ("sampling", "sentence store", "token store")


def write_corpus(source: Path, size: int, out: Path) -> None:
    lines = [line for line in source.read_text(encoding="utf-8").splitlines() if line.strip()]
    with out.open("w", encoding="utf-8") as file:
        for i, line in enumerate(itertools.islice(itertools.cycle(lines), size)):
            file.write(f"{line} {i}\n")


def stage(name: str, corpus: Path, rows: int) -> dict[str, float]:
    """Run one stage in this process, with everything loaded before the clock starts."""
    from dataclasses import replace

    from opencse.data.sampling import sample
    from opencse.data.token_store import TokenSource, open_token_store
    from opencse.encoder import load_encoder
    from opencse.io.corpus import Corpus, read_texts
    from opencse.recipes import load_recipe
    from opencse.views.sentence_store import open_sentence_store
    from opencse.views.storage import texts_hash

    tokenizer = load_encoder("minilm").tokenizer if name == "token store" else None
    settings = replace(load_recipe("debias").corpus, rows=rows, clauses=0.0, opposites=0)  # parsing does not grow
    folder = Path(os.environ["OPENCSE_CACHE"])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.perf_counter()
    if name == "sampling":
        sample(corpus, settings, folder / "sample.parquet")
    elif name == "sentence store":
        digest, _ = texts_hash(read_texts(corpus))
        open_sentence_store(read_texts(corpus), digest)
    else:
        open_token_store(Corpus(corpus), [TokenSource("text")], tokenizer, 64, progress=False)
    seconds = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    disk = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    return {"seconds": seconds, "more": (peak - before) / 1024, "peak": peak / 1024, "disk": disk / 2**20}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", type=Path)
    parser.add_argument("--sizes", default="10000,100000,1000000")
    parser.add_argument("--rows", type=int, default=24000)
    parser.add_argument("--stage", choices=STAGES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stage:
        print("RESULT " + json.dumps(stage(options.stage, options.corpus, options.rows)))
        return
    sizes = [int(size) for size in options.sizes.split(",")]
    print("| stage | sentences | seconds | peak MiB | of which for the stage | disk MiB | exponent of time |")
    print("|---|---|---|---|---|---|---|")
    for name in STAGES:
        last: tuple[int, float] | None = None
        for size in sizes:
            with tempfile.TemporaryDirectory() as folder:
                corpus = Path(folder) / "corpus.txt"
                write_corpus(options.corpus, size, corpus)
                (Path(folder) / "cache").mkdir()
                call = [sys.executable, __file__, str(corpus), "--stage", name, "--rows", str(options.rows)]
                environment = os.environ | {"OPENCSE_CACHE": f"{folder}/cache"}
                done = subprocess.run(call, check=True, capture_output=True, text=True, env=environment)
            line = next(line for line in done.stdout.splitlines() if line.startswith("RESULT "))
            found = json.loads(line.removeprefix("RESULT "))
            exponent = "" if last is None else f"{math.log(found['seconds'] / last[1]) / math.log(size / last[0]):.2f}"
            last = size, found["seconds"]
            cells = [f"{found['seconds']:.2f}", f"{found['peak']:.0f}", f"{found['more']:.0f}", f"{found['disk']:.1f}"]
            print(f"| {name} | {size:,} | {' | '.join(cells)} | {exponent} |", flush=True)


if __name__ == "__main__":
    main()
