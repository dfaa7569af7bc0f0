from __future__ import annotations

import json
import os

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import LONGEST_LINE, read_json, read_text, regular_file
from opencse.foundation.tables import read_parquet
from opencse.text.corpus import Corpus

ENDINGS = ("c.txt", "c.txt.gz", "c.csv", "c.tsv", "c.jsonl", "c.jsonl.gz", "c.parquet")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("reading")


def readable_or_named(path) -> None:
    """Reading gives texts that can be encoded, or one error that names the file."""
    try:
        for text in Corpus(path).texts():
            text.encode()
    except OpencseError as error:
        names(error, path.name)


def names(error, part) -> None:
    assert part in str(error)


@settings(max_examples=150, deadline=None)
@given(content=st.binary(max_size=400), name=st.sampled_from(ENDINGS))
def test_any_bytes_are_read_or_refused(folder, content, name) -> None:
    (folder / name).write_bytes(content)
    readable_or_named(folder / name)


JSON = st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists, max_leaves=5)


@settings(max_examples=100, deadline=None)
@given(rows=st.lists(st.dictionaries(st.sampled_from(["text", "a", "\ud800"]), JSON | st.just("\udfff")), max_size=4))
def test_any_json_rows_are_read_or_refused(folder, rows) -> None:
    (folder / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    readable_or_named(folder / "c.jsonl")


@settings(max_examples=100, deadline=None)
@given(texts=st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs", "Cc"])), min_size=1, max_size=5))
def test_what_was_written_is_read(folder, texts) -> None:
    (folder / "c.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    pq.write_table(pa.table({"text": pa.array(texts, pa.string())}), folder / "c.parquet")
    kept = [text if text is not None and text.strip() else None for text in texts]
    for name in ("c.jsonl", "c.parquet"):
        assert [row[0] for row in Corpus(folder / name).rows(["text"])] == kept


@pytest.mark.parametrize("content", ["[" * 100_000, '{"a":' * 100_000, '{"a": ' + "1" * 5000 + "}", "[]", "", "null"])
def test_json_that_no_reader_survives_is_one_clear_line(tmp_path, content) -> None:
    path = tmp_path / "a.json"
    path.write_text(content)
    with pytest.raises(OpencseError, match=r"a\.json: not "):
        read_json(path)


@pytest.mark.parametrize("name", ["c.txt", "c.txt.gz", "c.csv", "c.jsonl"])
def test_a_line_without_end_has_a_limit(tmp_path, name) -> None:
    import gzip

    path = tmp_path / name
    with gzip.open(path, "wb") if name.endswith("gz") else path.open("wb") as file:
        file.write(b"a" * (LONGEST_LINE + 1))
    with pytest.raises(OpencseError, match="line 1: longer than 4 MiB"):
        Corpus(path)


def test_devices_pipes_and_loops_are_no_files(tmp_path) -> None:
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "loop.txt").symlink_to(tmp_path / "loop.txt")
    for path in ("/dev/zero", "/dev/null", tmp_path / "pipe.txt", tmp_path / "loop.txt", "a" * 300, "a\0b", tmp_path):
        with pytest.raises(OpencseError):
            regular_file(path)


def test_two_columns_of_one_name_are_refused(tmp_path) -> None:
    (tmp_path / "c.csv").write_text("text,text\na,b\n")
    column = pa.array(["a"])
    pq.write_table(pa.Table.from_arrays([column, column], names=["text", "text"]), tmp_path / "c.parquet")
    for name in ("c.csv", "c.parquet"):
        with pytest.raises(OpencseError, match="two columns are named 'text'"):
            Corpus(tmp_path / name)


def test_parquet_with_invalid_utf8_and_with_a_damaged_page_is_refused(tmp_path) -> None:
    path = tmp_path / "c.parquet"
    array = pa.array([b"fine", b"a \xff"], pa.binary())
    pq.write_table(pa.table({"text": pa.Array.from_buffers(pa.string(), 2, array.buffers())}), path)
    with pytest.raises(OpencseError, match="UTF8"):
        list(Corpus(path).texts())
    pq.write_table(pa.table({"text": ["a dog", "a cat"] * 50}), path, write_page_checksum=True, compression="none")
    content = path.read_bytes()
    path.write_bytes(content.replace(b"a dog", b"a fog", 1))
    with pytest.raises(OpencseError, match=r"c\.parquet: not a whole"):
        read_parquet(path)


def test_a_document_is_utf8(tmp_path) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(b"\xef\xbb\xbfx = 1")
    assert read_text(path) == "x = 1"
    path.write_bytes("x = 'é'".encode("latin-1"))
    with pytest.raises(OpencseError, match="not valid UTF-8"):
        read_text(path)
