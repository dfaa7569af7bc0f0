from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import (
    LONGEST_LINE,
    file_extension,
    read_json,
    read_text,
    regular_file,
)
from opencse.foundation.tables import read_lines, read_parquet, read_table, table_columns
from opencse.foundation.toml_tables import parse_override, parse_toml
from opencse.recipes import Recipe, load_recipe
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


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(), st.lists, max_leaves=5
)


@settings(max_examples=100, deadline=None)
@given(
    rows=st.lists(
        st.dictionaries(st.sampled_from(["text", "a", "\ud800"]), JSON | st.just("\udfff")),
        max_size=4,
    )
)
def test_any_json_rows_are_read_or_refused(folder, rows) -> None:
    (folder / "c.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    readable_or_named(folder / "c.jsonl")


@settings(max_examples=100, deadline=None)
@given(
    texts=st.lists(
        st.none() | st.text(st.characters(exclude_categories=["Cs", "Cc"])), min_size=1, max_size=5
    )
)
def test_what_was_written_is_read(folder, texts) -> None:
    (folder / "c.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    pq.write_table(pa.table({"text": pa.array(texts, pa.string())}), folder / "c.parquet")
    kept = [text if text is not None and text.strip() else None for text in texts]
    for name in ("c.jsonl", "c.parquet"):
        assert [row[0] for row in Corpus(folder / name).rows(["text"])] == kept


@pytest.mark.parametrize(
    "content", ["[" * 100_000, '{"a":' * 100_000, '{"a": ' + "1" * 5000 + "}", "[]", "", "null"]
)
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
    for path in (
        "/dev/zero",
        "/dev/null",
        tmp_path / "pipe.txt",
        tmp_path / "loop.txt",
        "a" * 300,
        "a\0b",
        tmp_path,
    ):
        with pytest.raises(OpencseError):
            regular_file(path)


def test_two_columns_of_one_name_are_refused(tmp_path) -> None:
    (tmp_path / "c.csv").write_text("text,text\na,b\n")
    column = pa.array(["a"])
    pq.write_table(
        pa.Table.from_arrays([column, column], names=["text", "text"]), tmp_path / "c.parquet"
    )
    for name in ("c.csv", "c.parquet"):
        with pytest.raises(OpencseError, match="two columns are named 'text'"):
            Corpus(tmp_path / name)


def test_parquet_with_invalid_utf8_and_with_a_damaged_page_is_refused(tmp_path) -> None:
    path = tmp_path / "c.parquet"
    array = pa.array([b"fine", b"a \xff"], pa.binary())
    pq.write_table(pa.table({"text": pa.Array.from_buffers(pa.string(), 2, array.buffers())}), path)
    with pytest.raises(OpencseError, match="UTF8"):
        list(Corpus(path).texts())
    pq.write_table(
        pa.table({"text": ["a dog", "a cat"] * 50}),
        path,
        write_page_checksum=True,
        compression="none",
    )
    content = path.read_bytes()
    path.write_bytes(content.replace(b"a dog", b"a fog", 1))
    with pytest.raises(OpencseError, match=r"c\.parquet: not a complete"):
        read_parquet(path)


def test_a_document_is_utf8(tmp_path) -> None:
    path = tmp_path / "a.toml"
    path.write_bytes(b"\xef\xbb\xbfx = 1")
    assert read_text(path) == "x = 1"
    path.write_bytes("x = 'é'".encode("latin-1"))
    with pytest.raises(OpencseError, match="not valid UTF-8"):
        read_text(path)


def test_the_format_is_the_last_ending_before_gz():
    assert [file_extension(Path(name)) for name in ("a.tsv", "a.b.TSV.gz", "a", "a.gz")] == [
        ".tsv",
        ".tsv",
        "",
        "",
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("t.csv", 'a,b\n"1, 2",3\n\n4,"x\ny"\n'),
        ("t.tsv", "\na\tb\n1, 2\t3\n \n4\tx\n"),
        ("t.jsonl", '{"a": "1, 2", "b": "3"}\n  \n{"a": "4"}\n'),
    ],
)
def test_rows_come_by_name_and_blank_lines_empty(tmp_path, name, text):
    path = tmp_path / name
    path.write_text(text)
    rows = [row for _, row in read_table(path)]
    assert [row.get("a") for row in rows if row] == ["1, 2", "4"]
    assert sum(not row for row in rows) == 1
    assert table_columns(path) == ["a", "b"]


def test_lines_keep_other_separators_and_lose_the_byte_order_mark(tmp_path):
    path = tmp_path / "t.txt.gz"
    path.write_bytes(gzip.compress("\ufeffa\u2028b\r\n\x0cc\n".encode()))
    assert list(read_lines(path)) == [(1, "a\u2028b"), (2, "\x0cc")]
    (tmp_path / "l.txt").write_bytes("é\n".encode("latin-1"))
    assert list(read_lines(tmp_path / "l.txt", "latin-1")) == [(1, "é")]
    with pytest.raises(OpencseError, match="line 1: not valid UTF-8"):
        list(read_lines(tmp_path / "l.txt"))


ROWS = [
    {"text": "The lamp is on.", "product": "lamp"},
    {"text": "It is late, we go.", "product": "clock"},
]


def written(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_the_separator_of_a_csv_file_is_found(tmp_path, separator) -> None:
    lines = [separator.join(ROWS[0]), *(separator.join(row.values()) for row in ROWS)]
    path = written(tmp_path / "t.csv", "\n".join(lines))
    assert [row for _, row in read_table(path)] == ROWS
    assert Corpus(path).columns == ("text", "product")


@pytest.mark.parametrize(
    ("content", "columns"),
    [
        (
            "text\nOne; two; three.\nFour, five; six.\n",
            ["text"],
        ),  # what looks like a separator is text
        ("text,label\nOne; two,1\nThree; four,2\n", ["text", "label"]),
        ('"a; b";c\n1;2\n', ["a; b", "c"]),
        ("name;price\nlamp;3,50\nclock;7,20\n", ["name", "price"]),
    ],
)
def test_a_separator_gives_all_rows_the_same_number_of_cells(tmp_path, content, columns) -> None:
    if columns == ["text"]:  # a comma in a cell needs quotation marks
        with pytest.raises(OpencseError, match="line 3: 2 cells, but the header has 1 columns"):
            list(read_table(written(tmp_path / "t.csv", content)))
    else:
        assert (
            next(list(row) for _, row in read_table(written(tmp_path / "t.csv", content)))
            == columns
        )


def test_a_tsv_file_without_tabs_is_refused(tmp_path) -> None:
    with pytest.raises(
        OpencseError,
        match=r"no tab in its header, 'text;product'. Separate by tabs, or name the file",
    ):
        list(read_table(written(tmp_path / "t.tsv", "text;product\na;b\n")))


@pytest.mark.parametrize(
    "end",
    ["c,d\ne,f\n", '"c",d\ne,f\n', 'c,"d"\n'],
    ids=["to the end", "to the next cell", "within a row"],
)
def test_an_open_quotation_mark_is_named_by_its_line(tmp_path, end) -> None:
    with pytest.raises(
        OpencseError, match=r"t\.csv, line 4: a quotation mark in this row is not closed"
    ):
        list(read_table(written(tmp_path / "t.csv", f'text,label\na,b\na,b\n"The lamp,b\n{end}')))


def test_a_row_of_several_lines_is_said(tmp_path, capsys) -> None:
    path = written(tmp_path / "t.csv", 'text\na\n"b\nc\nd"\ne\n')
    assert [line for line, _ in read_table(path)] == [2, 3, 6]
    assert list(read_table(path))[1][1] == {"text": "b\nc\nd\n".strip()}
    said = [line for line in capsys.readouterr().err.splitlines() if "are one row" in line]
    assert len(said) == 1
    assert "t.csv: lines 3 to 5 are one row because of their quotation marks" in said[0]


def test_a_cell_of_any_length_below_a_line_s_limit_is_read(tmp_path) -> None:
    """Python's csv module refuses cells above 131,072 characters by itself."""
    long = "The lamp is on. " * 10_000
    path = written(tmp_path / "t.csv", f'id,text\n1,"{long}"\n')
    assert [row for _, row in read_table(path)] == [{"id": "1", "text": long}]


def test_utf16_with_a_byte_order_mark_is_read(tmp_path) -> None:
    for encoding in ("utf-16", "utf-16-be"):
        mark = b"\xfe\xff" if encoding == "utf-16-be" else b""
        path = written(tmp_path / "t.txt", mark + "Café\u2028b\r\nnoch eins\n".encode(encoding))
        assert list(read_lines(path)) == [(1, "Café\u2028b"), (2, "noch eins")]
    with pytest.raises(OpencseError, match="not valid UTF-16"):
        list(read_lines(written(tmp_path / "t.txt", "a\nb".encode("utf-16")[:-1])))


WINDOWS = "It doesn’t work – “yet”.\n"


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (WINDOWS.encode("cp1252"), "line 1: not valid UTF-8"),
        (WINDOWS.encode("utf-16-le"), "line 1: a NUL character"),
        (
            WINDOWS.encode("cp1252").decode("latin-1").encode(),
            r"line 1: the control character U\+0092",
        ),
    ],
)
def test_another_encoding_is_refused_and_its_remedy_is_a_command_that_works(
    tmp_path, content, problem
) -> None:
    path = written(tmp_path / "my texts.txt", content)
    with pytest.raises(OpencseError, match=problem) as error:
        list(read_lines(path))
    command = re.search("`(.*)`", error.value.remedy)[1]
    mended = subprocess.run(
        command, shell=True, check=True, input=content, stdout=subprocess.PIPE
    ).stdout
    assert list(read_lines(written(path, mended))) == [(1, WINDOWS.strip())]


def test_control_characters_are_refused_but_for_a_stray_one_in_a_large_corpus(tmp_path) -> None:
    for escape in (r"\u0000", r"\u0092"):
        with pytest.raises(OpencseError, match=r"line 1: .* character"):
            list(Corpus(written(tmp_path / "t.jsonl", f'{{"text": "a {escape}"}}\n')).texts())
    path = written(tmp_path / "t.txt", "a\n" * 2000 + "b\u0092\n")
    assert sum(1 for _ in read_lines(path)) == 2001


def test_line_ends_of_the_old_mac_and_workbooks_are_named_with_what_converts_them(tmp_path) -> None:
    path = written(tmp_path / "t.csv", "text,label\ra,b\r")
    with pytest.raises(OpencseError, match=r"a carriage return.*`tr"):
        list(read_table(path))
    with pytest.raises(OpencseError, match=r"XLSX files are not read.*CSV"):
        Corpus(written(tmp_path / "t.xlsx", b"PK"))


VALUES = [
    "nan",
    "inf",
    "-1",
    "0",
    "1e400",
    "9" * 30,
    '"x"',
    "[]",
    "{}",
    "true",
    "2020-01-01",
    "[nan]",
    "9" * 5000,
]
KEYS = [
    "optimizer.lr",
    "training.seed",
    "schedule.warmup",
    "losses",
    "views.anchor",
    "losses.info_nce",
    "for.other",
]


@settings(max_examples=100, deadline=None)
@given(text=st.text() | st.text("[]{}=.\"'a1\n#", max_size=60))
def test_any_text_is_toml_or_refused(text) -> None:
    try:
        assert isinstance(parse_toml(text, "here"), dict)
    except OpencseError as error:
        names(error, "here")


@pytest.mark.parametrize("text", ["x = " + "[" * 1500 + "]" * 1500, "x = " + "9" * 5000])
def test_toml_that_is_too_deep_or_too_large_is_refused(text) -> None:
    with pytest.raises(OpencseError, match=r"deep|cannot be read"):
        parse_toml(text, "here")


@settings(max_examples=100, deadline=None)
@given(text=st.text(max_size=30))
def test_any_override_is_read_or_refused(text) -> None:
    for one in (text, f"a.b={text}"):
        try:
            key, _ = parse_override(one)
        except OpencseError:
            continue
        assert key


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize("value", VALUES)
def test_any_value_gives_a_recipe_or_one_clear_line(key, value) -> None:
    try:
        assert isinstance(load_recipe("simcse", overrides=[f"{key}={value}"]), Recipe)
    except OpencseError as error:
        names(error, key.split(".")[0].removesuffix("es").removesuffix("s"))


@pytest.mark.parametrize("key", ["for", "with", "faithful"])
@pytest.mark.parametrize("value", ["3", "[1]", "{other = 3}"])
def test_layers_of_a_recipe_are_tables(tmp_path, key, value) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(f'extends = "simcse"\n{key} = {value}\n')
    with pytest.raises(OpencseError, match=f"{key}|unknown key 'other'"):
        load_recipe(path, variant="faithful", family="other")


def test_dotted_keys_of_great_depth_are_refused() -> None:
    with pytest.raises(OpencseError, match="nested too deep"):
        parse_toml("a." * 3_000 + "b = 1", "recipe.toml")
