"""Corpora of all formats, and the sample sentences."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opencse.foundation.errors import OpencseError
from opencse.text.corpus import Corpus, content_hash, demo_path

ROWS = [("A cat, sitting.", "x"), (None, "y"), ('He said "no".', None), ("na\u2028ïve", "z")]
TEXTS = [t for t, _ in ROWS if t]


def write(folder, kind: str):
    path = folder / f"corpus.{kind}"
    cells = [(t or "", n or "") for t, n in ROWS]
    if kind == "txt":
        path.write_text("".join(t + "\n" for t, _ in cells), encoding="utf-8")
    elif kind == "txt.gz":
        path.write_bytes(gzip.compress("\r\n".join(t for t, _ in cells).encode()))
    elif kind == "jsonl":
        path.write_text(
            "\n".join(json.dumps({"text": t, "note": n}) for t, n in ROWS), encoding="utf-8"
        )
    elif kind == "csv":
        quoted = ['"' + c.replace('"', '""') + '"' for row in cells for c in row]
        lines = [",".join(quoted[i : i + 2]) for i in range(0, len(quoted), 2)]
        path.write_text("text,note\n" + "\n".join(lines) + "\n", encoding="utf-8")
    elif kind == "tsv":
        path.write_text("text\tnote\n" + "".join(f"{t}\t{n}\n" for t, n in cells), encoding="utf-8")
    elif kind == "parquet":
        pq.write_table(pa.table({"text": [t for t, _ in ROWS], "note": [n for _, n in ROWS]}), path)
    else:
        path.mkdir()
        for i in (0, 1):
            part = ROWS[2 * i : 2 * i + 2]
            table = pa.table({"text": [t for t, _ in part], "note": [n for _, n in part]})
            pq.write_table(table, path / f"part-{i}.parquet")
    return path


KINDS = ["txt", "txt.gz", "jsonl", "csv", "tsv", "parquet", "folder"]


@pytest.mark.parametrize("kind", KINDS)
def test_every_format_gives_the_same_sentences(tmp_path, kind: str) -> None:
    """Columns stay aligned and keep nulls; one that is missing is named with those that exist."""
    path = write(tmp_path, kind)
    assert list(Corpus(path).texts()) == TEXTS
    assert Corpus(path).columns[0] == "text"
    if not kind.startswith("txt"):
        assert list(Corpus(path).rows(["note", "text"])) == [(n, t) for t, n in ROWS]
    with pytest.raises(OpencseError, match=r"no column 'negation'.*text"):
        list(Corpus(path).rows(["negation"]))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("c.tsv", "text\tnote\na\tb\nc\td\te\n", "line 3: 3 cells"),
        ("c.jsonl", '{"text": 3}\n', "line 1: column 'text' holds int. Give strings"),
        ("c.jsonl", "{oops\n", "line 1: not JSON"),
        ("c.xyz", "x", "unknown corpus format '.xyz'. Known: .md"),
        ("c.rtf", "x", "RTF files are not read. Convert it first"),
        ("c.odt", "x", "ODT files are not read. Convert it first"),
        ("c.txt.gz", "not gzip", "not a complete gzip file"),
        ("c.parquet", "not parquet", "not a complete Parquet"),
    ],
)
def test_bad_files_are_one_clear_line(tmp_path, name: str, content: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(content)
    with pytest.raises(OpencseError, match=message):
        list(Corpus(path).texts())


def test_a_missing_file_is_named_and_the_hash_follows_the_content(tmp_path) -> None:
    path = write(tmp_path, "txt")
    before = content_hash(path)
    assert content_hash(path) == before
    path.write_text("other\n")
    assert content_hash(path) != before
    with pytest.raises(OpencseError, match="no such file"):
        list(Corpus(tmp_path / "none.txt").texts())
    with pytest.raises(OpencseError, match="the path is empty"):  # of a variable that is not set
        list(Corpus("").texts())


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("parquet", "folder")])
def test_the_first_pass_hashes_the_file(tmp_path, monkeypatch, kind: str) -> None:
    path = write(tmp_path, kind)
    expected = content_hash(path)
    corpus = Corpus(path)
    list(corpus.texts())

    def again(_: object) -> str:
        raise AssertionError("the file is read a second time")

    monkeypatch.setattr("opencse.text.corpus.content_hash", again)
    assert corpus.content_hash == expected


def test_a_utf_16_file_and_one_of_several_blocks_are_hashed_too(tmp_path) -> None:
    (tmp_path / "wide.txt").write_text("One text.\nAnother text.\n", "utf-16")
    (tmp_path / "long.txt").write_text("A line of some words.\n" * 10_000)
    for name in ("wide.txt", "long.txt"):
        corpus = Corpus(tmp_path / name)
        next(corpus.texts())
        assert corpus.tally.digest == "" or name == "wide.txt"
        list(corpus.texts())
        assert corpus.tally.digest == content_hash(tmp_path / name)
        assert corpus.tally.line_feeds == (tmp_path / name).read_bytes().count(b"\n")


def test_a_table_of_a_binary_format_may_hold_control_characters(tmp_path):
    # Its text was decoded before, perhaps by opencse: a translation may have such a character.
    path = tmp_path / "corpus.parquet"
    pq.write_table(pa.table({"text": ["It\x92s safe."]}), path)
    assert list(Corpus(path).rows(["text"])) == [("It\x92s safe.",)]


def test_demo_stands_for_the_texts_of_the_package_unless_a_file_has_its_name(
    tmp_path, monkeypatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert demo_path("demo", "pairs.tsv").is_file()
    (tmp_path / "demo").write_text("A sentence of my own.\n")
    assert demo_path("demo", "pairs.tsv") == Path("demo")


def test_an_empty_path_is_not_the_current_folder() -> None:
    with pytest.raises(OpencseError, match="the path is empty"):
        demo_path("", "sentences.txt")
    assert demo_path(".", "sentences.txt") == Path(".")
