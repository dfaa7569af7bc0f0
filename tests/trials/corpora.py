"""Trials of corpora: broken, mislabelled, endless and odd text, tables and Parquet, in odd folders and places."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.trials.files import (
    arrow,
    bad_utf8,
    column_twice,
    dictionary_encoded,
    flipped,
    gzip_bomb,
    parquet,
    string_views,
    zeroed,
)
from tests.trials.places import Writer, folders, places
from tests.trials.trial import Expected, Trial
from tests.trials.world import World


def trials(world: World) -> Iterator[Trial]:
    """One for each broken corpus, through `train`; scored pairs through `evaluate` too."""
    for name, file, content, expected in [*_texts(world), *_tables(world), *_binary(world)]:
        yield Trial("corpora", name, _training(world, file, content), expected)
    for name, file, write, expected in [*folders(world), *places(world)]:
        yield Trial("corpora", name, _written(world, file, write), expected)
    for name, content in _pairs().items():
        odd = name in ("all scores alike", "one pair", "blank sentence")  # evaluate says that the score is undefined
        yield Trial("corpora", f"pairs: {name}", _dev(world, content), "either" if odd else "clear")
        yield Trial("corpora", f"evaluate, pairs: {name}", _evaluated(world, content), "either" if odd else "clear")


def _training(world: World, file: str, content: bytes) -> Callable[[Path], list[str]]:
    return _written(world, file, lambda path: path.write_bytes(content))


def _written(world: World, file: str, write: Writer) -> Callable[[Path], list[str]]:
    def prepared(work: Path) -> list[str]:
        write(work / file)
        return world.train(file)

    return prepared


def _dev(world: World, content: bytes) -> Callable[[Path], list[str]]:
    def prepared(work: Path) -> list[str]:
        (work / "dev.tsv").write_bytes(content)
        return world.train(None, "--dev", "dev.tsv")

    return prepared


def _evaluated(world: World, content: bytes) -> Callable[[Path], list[str]]:
    def prepared(work: Path) -> list[str]:
        (work / "mine.tsv").write_bytes(content)
        return ["evaluate", str(world.encoder), "--pairs", "mine.tsv", "--format", "json", "-o", "scores.json"]

    return prepared


def _texts(world: World) -> list[tuple[str, str, bytes, Expected]]:
    text = world.corpus.read_bytes()
    packed = gzip.compress(text, mtime=0)
    return [
        ("empty", "c.txt", b"", "clear"),
        ("blank lines alone", "c.txt", b"\n \n\t\n" * 9, "clear"),
        ("one sentence", "c.txt", b"a dog\n", "clear"),
        ("UTF-16", "c.txt", text.decode().encode("utf-16"), "clear"),
        ("UTF-16 without a mark", "c.txt", text.decode().encode("utf-16-le"), "either"),
        ("UTF-32", "c.txt", text.decode().encode("utf-32"), "clear"),
        ("Latin-1", "c.txt", text + "é\n".encode("latin-1"), "clear"),
        ("byte order mark", "c.txt", b"\xef\xbb\xbf" + text, "works"),
        ("CRLF", "c.txt", text.replace(b"\n", b"\r\n"), "works"),
        ("bare CR", "c.txt", text.replace(b"\n", b"\r"), "either"),
        ("no newline at the end", "c.txt", text[:-1], "works"),
        ("NUL bytes", "c.txt", text.replace(b" ", b"\0"), "either"),
        ("binary", "c.txt", bytes(range(256)) * 40, "clear"),
        ("overlong UTF-8", "c.txt", text + b"\xc0\xaf\n", "clear"),
        ("encoded surrogate", "c.txt", text + b"\xed\xa0\x80\n", "clear"),
        ("cut inside a character", "c.txt", text + "é".encode()[:1], "clear"),
        ("line separators of Unicode", "c.txt", text + "a\u2028b\u2029c\x85d\n".encode(), "works"),
        ("one line of 3 MB", "c.txt", text + b"dog " * 750_000 + b"\n", "either"),
        ("one word of 100 kB", "c.txt", text + b"d" * 100_000 + b"\n", "works"),
        ("40 MB without a line's end", "c.txt", b"d" * 40_000_000, "clear"),
        ("control characters", "c.txt", text + bytes(range(1, 9)) + b"\n", "works"),
        ("combining marks", "c.txt", text + ("a" + "\u0301" * 5000 + "\n").encode(), "works"),
        ("right-to-left marks", "c.txt", text + "\u202eabc\u202d\n".encode(), "works"),
        ("gzip", "c.txt.gz", packed, "works"),
        ("gzip truncated", "c.txt.gz", packed[:-20], "clear"),
        ("gzip of three bytes", "c.txt.gz", packed[:3], "clear"),
        ("gzip empty", "c.txt.gz", b"", "clear"),
        ("gzip, plain inside", "c.txt.gz", text, "clear"),
        ("gzip, wrong checksum", "c.txt.gz", packed[:-8] + bytes(8), "clear"),
        ("gzip, flipped", "c.txt.gz", flipped(packed, len(packed) // 2), "either"),
        ("gzip, rubbish behind", "c.txt.gz", packed + b"rubbish", "clear"),
        ("gzip twice", "c.txt.gz", gzip.compress(packed, mtime=0), "clear"),
        ("gzip called txt", "c.txt", packed, "clear"),
        ("gzip bomb, one line", "c.txt.gz", gzip_bomb(), "clear"),
        ("unknown ending", "c.doc", text, "clear"),
        ("no ending", "c", text, "clear"),
        ("two endings", "c.csv.txt", text, "works"),
        ("upper case ending", "C.TXT", text, "works"),
    ]


def _tables(world: World) -> list[tuple[str, str, bytes, Expected]]:
    rows = [json.dumps({"text": text}) for text in world.sentences]
    lines = "\n".join(rows).encode() + b"\n"
    csv = b"text\n" + world.corpus.read_bytes()
    return [
        ("JSONL", "c.jsonl", lines, "works"),
        ("JSONL, lone surrogate", "c.jsonl", lines + b'{"text": "a \\ud800 b"}\n', "clear"),
        ("JSONL, lone surrogate in a key", "c.jsonl", lines + b'{"text": "a", "\\udfff": 1}\n', "either"),
        ("JSONL, 10,000 digits", "c.jsonl", lines + b'{"text": "a", "n": ' + b"1" * 10_000 + b"}\n", "clear"),
        ("JSONL, 100,000 brackets", "c.jsonl", lines + b"[" * 100_000 + b"\n", "clear"),
        ("JSONL, 100,000 braces", "c.jsonl", lines + b'{"a":' * 100_000 + b"\n", "clear"),
        ("JSONL, first line 100,000 brackets", "c.jsonl", b"[" * 100_000 + b"\n", "clear"),
        ("JSONL, NaN", "c.jsonl", lines + b'{"text": NaN}\n', "clear"),
        ("JSONL, list", "c.jsonl", lines + b'["a"]\n', "clear"),
        ("JSONL, null line", "c.jsonl", lines + b"null\n", "clear"),
        ("JSONL, text a number", "c.jsonl", lines + b'{"text": 1}\n', "clear"),
        ("JSONL, text a table", "c.jsonl", lines + b'{"text": {}}\n', "clear"),
        ("JSONL, text null", "c.jsonl", lines + b'{"text": null}\n', "works"),
        ("JSONL, one column of another name", "c.jsonl", b'{"words": "a"}\n' * 9, "works"),
        ("JSONL, key twice", "c.jsonl", lines + b'{"text": "a", "text": "b"}\n', "either"),
        ("JSONL, cut", "c.jsonl", lines[:-9], "clear"),
        ("JSONL, one document", "c.jsonl", json.dumps({"text": "a"}, indent=1).encode(), "clear"),
        ("JSONL, rubbish behind", "c.jsonl", lines + b'{"text": "a"} x\n', "clear"),
        ("JSONL, mark inside", "c.jsonl", lines + b'\xef\xbb\xbf{"text": "a"}\n', "clear"),
        ("JSONL, bad escape", "c.jsonl", lines + b'{"text": "\\x"}\n', "clear"),
        ("JSONL, raw control character", "c.jsonl", lines + b'{"text": "a\x01"}\n', "clear"),
        ("JSONL, Latin-1", "c.jsonl", lines + b'{"text": "\xe9"}\n', "clear"),
        ("JSONL, UTF-16", "c.jsonl", lines.decode().encode("utf-16"), "clear"),
        ("JSONL, exponent", "c.jsonl", lines + b'{"text": "a", "n": 1e999}\n', "either"),
        ("JSONL, empty objects", "c.jsonl", b"{}\n" * 20, "clear"),
        ("JSONL of 20 MB in a line", "c.jsonl", b'{"text": "' + b"d" * 20_000_000 + b'"}\n', "clear"),
        ("CSV", "c.csv", csv, "works"),
        ("CSV, field of 200,000", "c.csv", csv + b'"' + b"d " * 100_000 + b'"\n', "either"),
        ("CSV, bare CR", "c.csv", csv.replace(b"\n", b"\r"), "clear"),
        ("CSV, bare CR inside", "c.csv", csv + b"a\rb\n", "clear"),
        ("CSV, quoted CR inside", "c.csv", csv + b'"a\rb"\n', "either"),
        ("CSV, header with CR", "c.csv", b"text\rmore\na,b\n", "clear"),
        ("CSV, open quote", "c.csv", csv + b'"never closed\n' + b"a\n" * 200, "clear"),
        ("CSV, open quote in the header", "c.csv", b'"text\n' + csv, "clear"),
        ("CSV, open quote, 30 MB", "c.csv", csv + b'"' + b"dog\n" * 7_500_000, "clear"),
        ("CSV, rubbish after a quote", "c.csv", csv + b'"a"b\n', "clear"),
        ("CSV, too many cells", "c.csv", csv + b"a,b\n", "clear"),
        ("CSV, NUL", "c.csv", csv + b"a\0b\n", "either"),
        ("CSV, column twice", "c.csv", b"text,text\n" + b"a,b\n" * 20, "clear"),
        ("CSV, one column of another name", "c.csv", csv.replace(b"text", b"words"), "works"),
        ("CSV, nameless columns", "c.csv", b"text,,\n" + b"a,b,c\n" * 20, "either"),
        ("CSV, header alone", "c.csv", b"text\n", "clear"),
        ("CSV, empty", "c.csv", b"", "clear"),
        ("CSV, header of 200,000", "c.csv", b"t" * 200_000 + b"\n" + csv, "clear"),
        ("CSV, 50,000 columns", "c.csv", b",".join(b"c%d" % i for i in range(50_000)) + b"\n", "clear"),
        ("TSV", "c.tsv", csv, "works"),
        ("TSV, column twice", "c.tsv", b"text\ttext\n" + b"a\tb\n" * 20, "clear"),
        ("TSV, too few cells", "c.tsv", b"text\tmore\n" + b"a\n" * 20, "clear"),
        ("TSV, quotes", "c.tsv", csv + b'"a\n', "works"),
        ("TSV, UTF-16", "c.tsv", csv.decode().encode("utf-16"), "clear"),
        ("CSV gzip truncated", "c.csv.gz", gzip.compress(csv, mtime=0)[:-12], "clear"),
        ("JSONL gzip of CSV", "c.jsonl.gz", gzip.compress(csv, mtime=0), "clear"),
    ]


def _binary(world: World) -> list[tuple[str, str, bytes, Expected]]:
    good = parquet({"text": list(world.sentences)})
    snappy = parquet({"text": list(world.sentences) * 50}, compression="snappy")
    middle, end = len(snappy) // 3, len(good)
    return [
        ("Parquet", "c.parquet", good, "works"),
        ("Parquet, empty", "c.parquet", b"", "clear"),
        ("Parquet, four bytes", "c.parquet", b"PAR1", "clear"),
        ("Parquet, magic twice", "c.parquet", b"PAR1" * 3, "clear"),
        ("Parquet, half", "c.parquet", good[: end // 2], "clear"),
        ("Parquet, without its last byte", "c.parquet", good[:-1], "clear"),
        ("Parquet, without its first byte", "c.parquet", good[1:], "clear"),
        ("Parquet, rubbish behind", "c.parquet", good + b"rubbish", "clear"),
        ("Parquet, text inside", "c.parquet", world.corpus.read_bytes(), "clear"),
        ("Parquet called txt", "c.txt", good, "clear"),
        ("Parquet called jsonl", "c.jsonl", good, "clear"),
        ("Parquet called csv", "c.csv", good, "clear"),
        ("Parquet called gz", "c.txt.gz", good, "clear"),
        ("Parquet, zeros in its pages", "c.parquet", zeroed(snappy, middle, 200), "clear"),
        ("Parquet, a page flipped", "c.parquet", flipped(snappy, middle), "either"),
        ("Parquet, page header flipped", "c.parquet", flipped(snappy, 5), "either"),
        ("Parquet, footer flipped", "c.parquet", flipped(good, end - 40), "either"),
        ("Parquet, footer zeroed", "c.parquet", zeroed(good, end - 60, 40), "clear"),
        ("Parquet, footer's length huge", "c.parquet", good[:-8] + b"\xff\xff\xff\x7fPAR1", "clear"),
        ("Parquet, footer's length 0", "c.parquet", good[:-8] + bytes(4) + b"PAR1", "clear"),
        ("Parquet, invalid UTF-8", "c.parquet", bad_utf8(world), "clear"),
        ("Parquet, column twice", "c.parquet", column_twice(world), "clear"),
        ("Parquet, numbers", "c.parquet", parquet({"text": [1, 2, 3]}), "clear"),
        ("Parquet, lists", "c.parquet", parquet({"text": [["a"], ["b"]]}), "clear"),
        ("Parquet, structs", "c.parquet", parquet({"text": [{"a": "b"}] * 9}), "clear"),
        ("Parquet, bytes", "c.parquet", parquet({"text": [b"a", b"\xff"]}), "clear"),
        ("Parquet, nulls alone", "c.parquet", parquet({"text": [None] * 9}), "clear"),
        ("Parquet, no rows", "c.parquet", parquet({"text": []}), "clear"),
        ("Parquet, no columns", "c.parquet", parquet({}), "clear"),
        ("Parquet, one column of another name", "c.parquet", parquet({"words": ["a"] * 9}), "works"),
        ("Parquet, dictionary", "c.parquet", dictionary_encoded(world), "either"),
        ("Parquet, string views", "c.parquet", string_views(world), "either"),
        ("Arrow file called parquet", "c.parquet", arrow(world), "clear"),
        ("Arrow file", "c.arrow", arrow(world), "clear"),
    ]


def _pairs() -> dict[str, bytes]:
    head, row = b"sentence1\tsentence2\tscore\n", b"a dog\ta cat\t%s\n"
    good = b"".join(row % str(i % 6).encode() for i in range(12))
    return {
        "empty": b"",
        "header alone": head,
        "score a word": head + good + row % b"high",
        "score NaN": head + good + row % b"nan",
        "score infinite": head + good + row % b"inf",
        "score missing": head + good + row % b"",
        "score of 5,000 digits": head + good + row % (b"1" * 5000),
        "all scores alike": head + row % b"1" * 20,
        "one pair": head + row % b"1",
        "column gone": head.replace(b"score", b"mark") + good,
        "column twice": head.replace(b"sentence2", b"sentence1") + good,
        "blank sentence": head + good + b"\t \t1\n",
        "not UTF-8": head + good + b"\xff\ta\t1\n",
        "binary": bytes(range(256)),
    }
