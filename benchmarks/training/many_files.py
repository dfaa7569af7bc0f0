"""The same sentences in one file and in many small ones: the processor seconds that reading them as documents takes.

    python benchmarks/training/many_files.py --data FOLDER [--sentences 200000] [--files 2000]

FOLDER holds `corpus/wiki_sentences_0*.txt.gz`. Nothing is in the cache, and each reading is a process of its own.
"""

from __future__ import annotations

import argparse
import multiprocessing
import sys
import tempfile
import time
from itertools import islice
from pathlib import Path

from opencse.text.documents import Documents

sys.path.append(str(Path(__file__).parents[1] / "mining"))
from mining import sentences


def reading(path: Path) -> tuple[int, float]:
    """Return the number of sentences of documents, and the processor seconds of reading them."""
    before = time.process_time()
    count = sum(len(passage.sentences) for passage in Documents(path).passages())
    return count, time.process_time() - before


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--sentences", type=int, default=200_000)
    parser.add_argument("--files", type=int, default=2000)
    options = parser.parse_args()

    with tempfile.TemporaryDirectory() as folder:
        one = Path(folder) / "one.txt"
        many = Path(folder) / "many"
        many.mkdir()
        lines = [f"{line}\n" for line in islice(sentences(options.data), options.sentences)]
        one.write_text("".join(lines), encoding="utf-8")
        size = len(lines) // options.files
        for first in range(0, len(lines), size):
            text = "".join(lines[first : first + size])
            (many / f"{first:09d}.txt").write_text(text, encoding="utf-8")

        context = multiprocessing.get_context("spawn")
        for path in (one, many):
            with context.Pool(1) as pool:
                count, seconds = pool.apply(reading, (path,))
            print(f"{path.name}: {count:,} sentences in {seconds:.1f} processor seconds")


if __name__ == "__main__":
    main()
