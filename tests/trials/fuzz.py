"""`python -m tests.trials.fuzz --minutes 1`: random changes of every format that is read, straight into its reader.

A reader may return, or raise `OpencseError`; everything else is a find, which is kept with the bytes that led to it.
"""

from __future__ import annotations

import argparse
import gzip
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from opencse.errors import OpencseError
from tests.tiny import WORDS
from tests.trials.generated import mutated

_RECIPE = b"""
extends = "simcse"
[training]
seed = 3
[for.other]
terms.contrastive.temperature = 0.1
"""
Reader = Callable[[Path], object]


def formats(folder: Path) -> dict[str, tuple[bytes, Reader]]:
    """For each file name that is read a whole example, and the reader."""
    from opencse.evaluation.pairs import read_pairs
    from opencse.io.corpus import column_names, read_texts
    from opencse.recipes import load_recipe
    from opencse.runs.checkpoint import check_weights
    from opencse.runs.folder import read_record
    from opencse.views.storage import read_header

    def corpus(path: Path) -> None:
        column_names(path)
        for text in read_texts(path):
            text.encode()

    examples = dict(_examples(folder))
    readers: dict[str, Reader] = {
        "recipe.toml": load_recipe,
        "pairs.tsv": read_pairs,
        "run.json": lambda path: read_record(path.parent),
        "weights.safetensors": check_weights,
        "part.parquet": read_header,
        "modules.json": _model_folder,
    }
    return {name: (content, readers.get(name, corpus)) for name, content in examples.items()}


def _model_folder(path: Path) -> None:
    from opencse.encoder.model_folder import transformer_folder

    transformer_folder(path.parent)


def _examples(folder: Path) -> Iterator[tuple[str, bytes]]:
    import pyarrow as pa
    import pyarrow.parquet as pq
    import torch

    from opencse.runs.checkpoint import save_weights

    texts = [f"{a} {b} {c}" for a, b, c in zip(WORDS, WORDS[1:], WORDS[2:], strict=False)]
    plain = "\n".join(texts).encode()
    yield from {
        "c.txt": plain,
        "c.txt.gz": gzip.compress(plain, mtime=0),
        "c.csv": b"text,more\n" + "".join(f'"{t}","a ""b"""\n' for t in texts).encode(),
        "c.tsv": b"text\tmore\n" + "".join(f"{t}\tb\n" for t in texts).encode(),
        "c.jsonl": "".join(json.dumps({"text": t + " é", "more": [1, {"a": None}]}) + "\n" for t in texts).encode(),
        "pairs.tsv": b"sentence1\tsentence2\tscore\n" + "".join(f"{t}\ta cat\t1.5\n" for t in texts[:20]).encode(),
        "recipe.toml": _RECIPE,
        "run.json": json.dumps({"fingerprint": {"recipe": "a"}, "outcome": {"steps": 3}}, indent=1).encode(),
        "modules.json": json.dumps(
            [{"idx": 0, "path": "", "type": "sentence_transformers.models.Transformer"}]
        ).encode(),
    }.items()
    for name, codec in (("c.parquet", "zstd"), ("plain.parquet", "none")):
        pq.write_table(pa.table({"text": texts, "more": [None, *texts[1:]]}), folder / name, compression=codec)
        yield name, (folder / name).read_bytes()
    table = pa.table({"text": texts}).replace_schema_metadata({b"opencse.views": b'{"format": 1}'})
    pq.write_table(table, folder / "part.parquet")
    yield "part.parquet", (folder / "part.parquet").read_bytes()
    save_weights(torch.nn.Linear(4, 4), folder / "weights.safetensors")
    yield "weights.safetensors", (folder / "weights.safetensors").read_bytes()


def fuzz(folder: Path, rng: random.Random, *, until: Callable[[int], bool]) -> tuple[Counter[str], list[str]]:
    """Feed changed examples to their readers while `until` says no; return the inputs by format, and the finds."""
    counts: Counter[str] = Counter()
    finds: list[str] = []
    known = formats(folder)
    while not until(counts.total()):
        name = rng.choice(list(known))
        content, read = known[name]
        changed = mutated(content, rng)
        path = folder / name
        path.write_bytes(changed)
        counts[name] += 1
        try:
            read(path)
        except OpencseError:
            continue
        except Exception as error:
            kept = folder / f"find-{len(finds)}-{name}"
            kept.write_bytes(changed)
            finds.append(f"{kept}: {type(error).__name__}: {error}"[:300])
    return counts, finds


def main() -> int:
    """Fuzz for the minutes that are asked for; the exit code is 1 where something was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=None)
    options = parser.parse_args()
    seed = options.seed if options.seed is not None else random.randrange(2**32)
    end = time.monotonic() + 60 * options.minutes
    folder = Path(tempfile.mkdtemp(prefix="opencse-fuzz-"))
    counts, finds = fuzz(folder, random.Random(seed), until=lambda _: time.monotonic() > end)
    for name, count in sorted(counts.items()):
        print(f"{name:<22}{count:>10}")
    print(f"{'inputs':<22}{counts.total():>10}   seed {seed}, finds: {len(finds)}")
    print("\n".join(finds))
    return int(bool(finds))


if __name__ == "__main__":
    sys.exit(main())
