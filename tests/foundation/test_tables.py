from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import file_extension
from opencse.foundation.tables import read_lines, read_table, table_columns


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
