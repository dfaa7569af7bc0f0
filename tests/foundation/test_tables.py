"""Tables and texts, also as offices write them: other separators, quotation marks and encodings."""

from __future__ import annotations

import gzip
import re
import subprocess
from pathlib import Path

import pytest

from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import file_extension
from opencse.foundation.tables import read_lines, read_table, table_columns
from opencse.text.corpus import Corpus


def test_the_format_is_the_last_ending_before_gz():
    assert [file_extension(Path(name)) for name in ("a.tsv", "a.b.TSV.gz", "a", "a.gz")] == [".tsv", ".tsv", "", ""]


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


ROWS = [{"text": "The lamp is on.", "product": "lamp"}, {"text": "It is late, we go.", "product": "clock"}]


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
        ("text\nOne; two; three.\nFour, five; six.\n", ["text"]),  # what looks like a separator is text
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
        assert next(list(row) for _, row in read_table(written(tmp_path / "t.csv", content))) == columns


def test_a_tsv_file_without_tabs_is_refused(tmp_path) -> None:
    with pytest.raises(OpencseError, match=r"no tab in its header, 'text;product'. Separate by tabs, or name the file"):
        list(read_table(written(tmp_path / "t.tsv", "text;product\na;b\n")))


@pytest.mark.parametrize(
    "end", ["c,d\ne,f\n", '"c",d\ne,f\n', 'c,"d"\n'], ids=["to the end", "to the next cell", "within a row"]
)
def test_an_open_quotation_mark_is_named_by_its_line(tmp_path, end) -> None:
    with pytest.raises(OpencseError, match=r"t\.csv, line 4: a quotation mark in this row is not closed"):
        list(read_table(written(tmp_path / "t.csv", f'text,label\na,b\na,b\n"The lamp,b\n{end}')))


def test_a_row_of_several_lines_is_said(tmp_path, capsys) -> None:
    path = written(tmp_path / "t.csv", 'text\na\n"b\nc\nd"\ne\n')
    assert [line for line, _ in read_table(path)] == [2, 3, 6]
    assert list(read_table(path))[1][1] == {"text": "b\nc\nd\n".strip()}
    said = [line for line in capsys.readouterr().err.splitlines() if "are one row" in line]
    assert len(said) == 1
    assert "t.csv: lines 3 to 5 are one row, by the quotation marks" in said[0]


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
        (WINDOWS.encode("cp1252").decode("latin-1").encode(), r"line 1: the control character U\+0092"),
    ],
)
def test_another_encoding_is_refused_and_its_remedy_is_a_command_that_works(tmp_path, content, problem) -> None:
    path = written(tmp_path / "my texts.txt", content)
    with pytest.raises(OpencseError, match=problem) as error:
        list(read_lines(path))
    command = re.search("`(.*)`", error.value.remedy)[1]
    mended = subprocess.run(command, shell=True, check=True, input=content, stdout=subprocess.PIPE).stdout
    assert list(read_lines(written(path, mended))) == [(1, WINDOWS.strip())]


def test_a_stray_control_character_in_a_large_corpus_is_kept(tmp_path) -> None:
    path = written(tmp_path / "t.txt", "a\n" * 2000 + "b\u0092\n")
    assert sum(1 for _ in read_lines(path)) == 2001


def test_control_characters_in_cells_are_refused(tmp_path) -> None:
    for escape in (r"\u0000", r"\u0092"):
        with pytest.raises(OpencseError, match=r"line 1: .* character"):
            list(Corpus(written(tmp_path / "t.jsonl", f'{{"text": "a {escape}"}}\n')).texts())


def test_line_ends_of_the_old_mac_are_converted_by_the_command(tmp_path) -> None:
    path = written(tmp_path / "t.csv", "text,label\ra,b\r")
    with pytest.raises(OpencseError, match=r"a carriage return.*`tr"):
        list(read_table(path))


def test_a_workbook_is_named_with_what_to_convert_it_to(tmp_path) -> None:
    with pytest.raises(OpencseError, match=r"XLSX files are not read.*CSV"):
        Corpus(written(tmp_path / "t.xlsx", b"PK"))
