from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opencse.evaluation.probes.sentence_versions import KINDS, read_sentences
from opencse.foundation.errors import OpencseError
from tests.evaluation.probes.helpers import ROWS, write_sentences


def test_reads_a_table_of_which_a_limit_draws_rows(tmp_path):
    path = write_sentences(tmp_path / "mine.tsv")
    found = read_sentences(path)
    assert (found.kinds, [*found.anchors]) == (KINDS, [row[0] for row in ROWS])
    rows, first, second = found.pairs("negation")
    assert (rows.tolist(), first, second) == ([0, 1, 2, 3], [*found.anchors], [row[2] for row in ROWS])
    drawn = read_sentences(path, limit=2)
    assert (len(drawn), drawn.total) == (2, 4)
    assert read_sentences(path, limit=2) == drawn


def test_reads_built_views_with_nulls_and_takes_another_row_for_random(tmp_path):
    table = {
        "id": [0, 1, 2],
        "text": ["a b", "c d", "e f"],
        "negation": ["not a b", None, None],
        "negation.rule": ["x", "y", "z"],
    }
    folder = tmp_path / "views"
    folder.mkdir()
    pq.write_table(pa.table(table), folder / "part-00000.parquet")
    found = read_sentences(folder)
    assert set(found.versions) == {"negation", "random"}
    assert found.pairs("negation")[2] == ["not a b"]
    assert all(other != own for own, other in zip(found.anchors, found.versions["random"], strict=True))


def test_another_row_is_never_a_copy_of_the_sentence(tmp_path):
    texts = ["the sun rises", "The sun  rises", "rain falls", "the sun rises"]
    pq.write_table(pa.table({"text": texts, "negation": ["no"] * 4}), tmp_path / "mine.parquet")
    found = read_sentences(tmp_path / "mine.parquet", seed=3)
    assert [found.versions["random"][i] for i in (0, 1, 3)] == ["rain falls"] * 3
    pq.write_table(pa.table({"text": texts[:2], "negation": ["no"] * 2}), tmp_path / "copies.parquet")
    assert "random" not in read_sentences(tmp_path / "copies.parquet").versions


def test_a_substitution_of_san_is_no_transformation(tmp_path):
    table = {"text": ["a b", "c d"], "negation": ["x", "y"], "substitution": ["a x", "y d"]}
    pq.write_table(pa.table(table), tmp_path / "mine.parquet")
    assert "substitution" in read_sentences(tmp_path / "mine.parquet").kinds
    pq.write_table(pa.table(table | {"substitution.overlap": ["0.5", "0.5"]}), tmp_path / "mine.parquet")
    assert "substitution" not in read_sentences(tmp_path / "mine.parquet").kinds


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("a\tb\nx\ty\n", "no column 'sentence' or 'text'"),
        ("text\tother\nx\ty\n", "no transformed version"),
        ("text\tnegation\n", "holds no sentence"),
        ("text\tnegation\nx\t\n", "negation are empty"),
        ("", "no column"),
    ],
)
def test_bad_tables_are_named(tmp_path, content, problem):
    path = tmp_path / "bad.tsv"
    path.write_text(content)
    with pytest.raises(OpencseError, match=problem):
        read_sentences(path)
