"""Tables in memory, of any library: equal rows are the same corpus."""

from __future__ import annotations

import datasets
import pandas as pd
import pyarrow as pa
import pytest

from opencse.commands import checks
from opencse.foundation.errors import OpencseError
from opencse.text.user_text import UserText, collect_passages, collect_queries

ROWS = [
    {"text": "Refunds are allowed.", "negative": "Refunds are not allowed.", "stars": 3},
    {"text": "Guests can edit pages.", "negative": None, "stars": 4},
    {"text": "The lamp is on.", "negative": "The lamp is off.", "stars": 5},
]
COLUMNS = {name: [row[name] for row in ROWS] for name in ROWS[0]}


def objects(folder):
    """Return the same rows as an object of each kind."""
    dataset = datasets.Dataset.from_list(ROWS)
    dataset.save_to_disk(folder / "saved")
    datasets.DatasetDict({"train": dataset}).save_to_disk(folder / "splits")
    # Stored in another order, with indices on top.
    shuffled = datasets.Dataset.from_list(ROWS[::-1]).select([2, 1, 0])
    return {
        "dicts": ROWS,
        "columns": COLUMNS,
        "arrow": pa.table(COLUMNS),
        "large": pa.table(COLUMNS).set_column(
            0, "text", pa.array(COLUMNS["text"], pa.large_string())
        ),
        "batch": pa.RecordBatch.from_pylist(ROWS),
        "pandas": pd.DataFrame(ROWS, index=[7, 8, 9]),
        "dataset": dataset,
        "selected": shuffled,
        "only split": datasets.DatasetDict({"train": dataset}),
        "saved folder": folder / "saved",
        "saved splits": str(folder / "splits"),
    }


def test_equal_rows_are_the_same_corpus_of_the_same_bytes(tmp_path) -> None:
    hashes = set()
    for name, given in objects(tmp_path).items():
        text = UserText(given)
        assert set(text.columns) == {"text", "negative", "stars"}, name
        corpus = text.corpus(split=False)
        assert list(corpus.texts()) == COLUMNS["text"], name
        assert [row[0] for row in corpus.rows(["negative"])] == COLUMNS["negative"], name
        hashes.add(corpus.content_hash)
    assert len(hashes) == 1


def test_polars_too(tmp_path) -> None:
    polars = pytest.importorskip("polars")
    expected = UserText(ROWS).corpus(split=False).content_hash
    assert UserText(polars.DataFrame(ROWS)).corpus(split=False).content_hash == expected


def test_a_column_that_the_first_row_lacks_is_kept() -> None:
    text = UserText(
        [{"text": "One lamp is on."}, {"text": "Two are off.", "negative": "They are on."}]
    )
    assert list(text.columns) == ["text", "negative"]


def test_passages_queries_and_checks_take_tables(tmp_path) -> None:
    assert [passage.text for passage in collect_passages(pd.DataFrame(ROWS))] == COLUMNS["text"]
    assert collect_queries(pa.table({"query": ["a", "b"], "user": [1, 2]})) == ["a", "b"]
    assert collect_queries(pa.array(["a", "b"])) == ["a", "b"]
    checks.text("hub:owner/name")
    checks.columns_of_training("hince", ["text", "negative"], ROWS)


def test_several_splits_are_named_and_a_data_set_that_is_not_there() -> None:
    part = datasets.Dataset.from_list(ROWS)
    with pytest.raises(OpencseError, match=r"the splits train, test.*data\['train'\]"):
        UserText(datasets.DatasetDict({"train": part, "test": part}))
    with pytest.raises(OpencseError, match=r"hub:nobody/nothing cannot be read"):
        UserText("hub:nobody/nothing")
