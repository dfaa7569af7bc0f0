"""Trials of texts and tables through the command line: broken, mislabelled, endless and odd, in odd places."""

from __future__ import annotations

import gzip
import json
import os
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.trials.trial import Expected, Trial, made, with_file
from tests.trials.world import World, not_finite

PAIRS = b"sentence1\tsentence2\tscore\na cat\ta dog\t1\nred\tblue\t3\n"


def trials(world: World) -> Iterator[Trial]:
    """One for each broken corpus, through `train`; one for each broken table, through its option."""
    for name, file, content, expected in _corpora(world):
        arguments = world.train(file)
        yield Trial("corpora", name, with_file(file, content, arguments), expected)
    for name, (file, make) in _places(world).items():
        yield Trial("corpora", name, made(make, file, world.train(file)), "clear")
    for name, (file, content, expected) in _pairs().items():
        arguments = world.train(None, "--dev", file)
        yield Trial("corpora", f"pairs {name}", with_file(file, content, arguments), expected, check=not_finite)


def _corpora(world: World) -> list[tuple[str, str, bytes, Expected]]:
    text = world.corpus.read_bytes()
    packed, table = gzip.compress(text, mtime=0), b"text\n" + text
    lines = "".join(json.dumps({"text": each}) + "\n" for each in world.sentences).encode()
    columns = parquet({"text": list(world.sentences)})
    return [
        ("empty", "c.txt", b"", "clear"),
        ("blank lines alone", "c.txt", b"\n \n\t\n" * 9, "clear"),
        ("UTF-16", "c.txt", text.decode().encode("utf-16"), "works"),
        ("binary", "c.txt", bytes(range(256)) * 40, "clear"),
        ("CRLF and a mark", "c.txt", b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n"), "works"),
        ("one word of 100 kB", "c.txt", text + b"d" * 100_000 + b"\n", "works"),
        ("control characters", "c.txt", text + bytes(range(1, 9)) + b"\n", "works"),
        ("combining marks", "c.txt", text + ("a" + "\u0301" * 5000 + "\n").encode(), "works"),
        ("gzip truncated", "c.txt.gz", packed[:-20], "clear"),
        ("gzip, rubbish behind", "c.txt.gz", packed + b"rubbish", "clear"),
        ("gzip bomb", "c.txt.gz", gzip.compress(bytes(2**28), mtime=0), "clear"),
        ("JSONL, 10,000 digits", "c.jsonl", lines + b'{"text": "a", "n": ' + b"1" * 10_000 + b"}\n", "clear"),
        ("JSONL, 100,000 brackets", "c.jsonl", lines + b"[" * 100_000 + b"\n", "clear"),
        ("CSV, open quote, 30 MB", "c.csv", table + b'"' + b"dog\n" * 7_500_000, "clear"),
        ("CSV, 50,000 columns", "c.csv", b",".join(b"c%d" % i for i in range(50_000)) + b"\n", "clear"),
        ("Parquet, footer's length huge", "c.parquet", columns[:-8] + b"\xff\xff\xff\x7fPAR1", "clear"),
        ("Parquet, footer flipped", "c.parquet", columns[:-40] + b"\xff" + columns[-39:], "either"),
        ("Parquet, lists", "c.parquet", parquet({"text": [["a"], ["b"]]}), "clear"),
        ("Parquet, nulls alone", "c.parquet", parquet({"text": [None] * 9}), "clear"),
        ("Parquet called txt", "c.txt", columns, "clear"),
    ]


def _places(world: World) -> dict[str, tuple[str, Callable[[Path], object]]]:
    def broken_part(path: Path) -> None:
        path.mkdir()
        whole = parquet({"text": list(world.sentences)})
        (path / "part-0.parquet").write_bytes(whole)
        (path / "part-1.parquet").write_bytes(whole[:-9])

    def sparse(path: Path) -> None:
        with path.open("wb") as file:
            file.truncate(2**40)

    return {
        "missing": ("c.txt", lambda _: None),
        "name is not UTF-8": (os.fsdecode(b"a\xffb.txt"), lambda _: None),
        "socket": ("c.txt", lambda path: socket.socket(socket.AF_UNIX).bind(path.name)),
        "file of /proc": ("c.txt", lambda path: path.symlink_to("/proc/self/mem")),
        "sparse file of 1 TB": ("c.txt", sparse),
        "folder, empty": ("c", lambda path: path.mkdir()),
        "folder, second part broken": ("c", broken_part),
    }


def _pairs() -> dict[str, tuple[str, bytes, Expected]]:
    def jsonl(**row: object) -> bytes:
        return json.dumps({"sentence1": "a cat", "sentence2": "a dog", "score": 1, **row}).encode() + b"\n"

    return {
        "scores of nan": ("l.csv", b"sentence1,sentence2,score\na,b,nan\na,c,1\n", "clear"),
        "null as a sentence": ("l.jsonl", jsonl(sentence2=None), "clear"),
        "half a surrogate pair": ("l.jsonl", jsonl(sentence1="\ud800"), "clear"),
        "5 MiB in a line": ("l.tsv", PAIRS + b"a" * (5 * 2**20) + b"\ta dog\t1\n", "clear"),
        "whole": ("l.tsv", PAIRS, "works"),
        "one text of a megabyte": ("l.tsv", PAIRS + b"cat " * 2**18 + b"\ta dog\t1\n", "works"),
    }


def parquet(columns: object) -> bytes:
    """The bytes of a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    sink = pa.BufferOutputStream()
    pq.write_table(pa.table(columns), sink)
    return sink.getvalue().to_pybytes()
