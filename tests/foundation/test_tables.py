"""Tables of strangers: what is left out is said, and no cell fills the memory."""

from __future__ import annotations

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opencse.foundation.errors import OpencseError
from opencse.foundation.tables import column_rows, read_parquet
from opencse.text.user_text import UserText


def test_records_with_another_key_are_said(tmp_path, capsys) -> None:
    path = tmp_path / "c.jsonl"
    rows = [{"txt": f"sentence {i} is here"} for i in range(12)]
    rows += [{"text": f"another sentence {i}"} for i in range(500)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert len(list(UserText(path).corpus().texts())) == 12
    printed = capsys.readouterr().err
    assert (
        "500 of 512 records have no 'txt' and are left out; the first of them has 'text'" in printed
    )


def test_the_choice_of_a_column_is_said(tmp_path, capsys) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,Body,sentence\n1,The lamp is on.,a b c\n2,The lamp is off.,d e f\n")
    UserText(path).corpus()
    assert (
        "the texts are in the column 'sentence', the likeliest by its name"
        in capsys.readouterr().err
    )
    path = tmp_path / "one.csv"
    path.write_text("words\nThe lamp is on.\nThe lamp is off.\n")
    UserText(path).corpus()
    assert "the texts are in the column 'words', the only one" in capsys.readouterr().err


@pytest.mark.parametrize("repeated", [1, 100_000])
def test_a_cell_that_fills_the_memory(tmp_path, repeated) -> None:
    """A dictionary of Parquet holds a text once, whatever the number of rows."""
    indices = pa.array([0] * repeated, pa.int32())
    texts = pa.DictionaryArray.from_arrays(indices, pa.array(["a " * (8 * 2**20)]))
    pq.write_table(
        pa.table({"text": texts.cast(pa.string()) if repeated == 1 else texts}),
        tmp_path / "t.parquet",
        store_schema=False,
    )
    with pytest.raises(OpencseError, match="has a text of 16 MiB, more than 4"):
        list(column_rows(tmp_path / "t.parquet", ["text"]))


def test_long_texts_are_read_in_small_parts(tmp_path) -> None:
    table = pa.table({"text": [str(i) * 2**18 for i in range(10)] * 100, "n": range(1000)})
    pq.write_table(table, tmp_path / "t.parquet")
    rows = list(column_rows(tmp_path / "t.parquet", ["text", "n"]))
    assert [row[2][1] for row in rows] == list(range(1000))
    assert rows[7][2][0] == "7" * 2**18
    assert read_parquet(tmp_path / "t.parquet", ["n"]).column("n").to_pylist() == list(range(1000))
