from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from opencse.foundation.errors import OpencseError
from opencse.recipes import MixturePart
from opencse.recipes.load import RecipeFile
from opencse.recipes.rows.prepare import mix_rows
from opencse.recipes.rows.sampling import paraphrase_columns, paraphrase_settings
from opencse.text.corpus import Corpus

SENTENCES = 60


@pytest.fixture
def built(tmp_path):
    """Every third sentence has an opposite, every second an exchange."""
    numbers = range(SENTENCES)
    table = {
        "text": [f"Sentence {i}" + " and more" * (i % 5) for i in numbers],
        "opposite": [f"opposite {i}" if i % 3 == 0 else None for i in numbers],
        "exchanged": [f"exchanged {i}" if i % 2 == 0 else None for i in numbers],
    }
    path = tmp_path / "built.parquet"
    pq.write_table(pa.table(table), path)
    return Corpus(path)


def rows(corpus):
    return pq.read_table(corpus.path).to_pylist()


def test_each_part_has_its_rows_and_its_views_only(built, tmp_path) -> None:
    parts = {
        "opposites": MixturePart(rows=10, needs=("opposite",)),
        "order": MixturePart(rows=20, needs=("exchanged",), keeps=("opposite",)),
        "plain": MixturePart(rows=30),
    }
    found = rows(mix_rows(built, parts, tmp_path / "out.parquet"))
    assert Counter(row["part"] for row in found) == {"opposites": 10, "order": 20, "plain": 30}
    for row in found:
        number = int(row["text"].split()[1])
        opposite = f"opposite {number}" if number % 3 == 0 else None
        assert row["opposite"] == (None if row["part"] == "plain" else opposite)
        assert row["exchanged"] == (f"exchanged {number}" if row["part"] == "order" else None)
        assert row["part"] != "opposites" or opposite is not None
    assert [row["part"] for row in found] != sorted(row["part"] for row in found)


def test_too_few_sentences_are_repeated_evenly(built, tmp_path) -> None:
    found = rows(mix_rows(built, {"opposites": MixturePart(rows=50, needs=("opposite",))}, tmp_path / "out.parquet"))
    assert sorted(Counter(row["text"] for row in found).values()) == [2] * 10 + [3] * 10


def test_long_sentences_and_empty_parts_are_left_out(built, tmp_path) -> None:
    parts = {"short": MixturePart(rows=40, words=4), "none": MixturePart(rows=0, needs=("opposite",))}
    found = rows(mix_rows(built, parts, tmp_path / "out.parquet"))
    assert len(found) == 40
    assert max(len(row["text"].split()) for row in found) == 4
    assert "opposite" not in found[0]


def test_the_seed_decides_and_equal_input_is_not_mixed_twice(built, tmp_path) -> None:
    parts = {"plain": MixturePart(rows=10)}
    first = mix_rows(built, parts, tmp_path / "first.parquet", seed=1)
    assert rows(first) == rows(mix_rows(built, parts, tmp_path / "second.parquet", seed=1))
    other = rows(mix_rows(built, parts, tmp_path / "third.parquet", seed=2))
    assert {row["text"] for row in rows(first)} != {row["text"] for row in other}
    before = first.path.stat().st_mtime_ns
    assert mix_rows(built, parts, first.path, seed=1).path.stat().st_mtime_ns == before
    assert len(rows(mix_rows(built, {"plain": MixturePart(rows=11)}, first.path, seed=1))) == 11


def test_a_part_that_nothing_fits_is_left_out_with_a_note(built, tmp_path) -> None:
    notes = []
    parts = {"short": MixturePart(rows=5, words=1), "plain": MixturePart(rows=7)}
    found = rows(mix_rows(built, parts, tmp_path / "out.parquet", notify=notes.append))
    assert {row["part"] for row in found} == {"plain"}
    assert len(found) == 7
    assert notes == ["no sentence fits the part short (at most 1 words) of the training rows: it is left out"]


def test_no_part_that_fits_is_an_error(built, tmp_path) -> None:
    with pytest.raises(OpencseError, match="none of the 60 sentences fits any part"):
        mix_rows(built, {"short": MixturePart(rows=5, words=1)}, tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


def test_a_folder_is_refused_at_once(tmp_path) -> None:
    (tmp_path / "table.csv").write_text("text,paraphrase\nIt rains.,Rain falls.\n", encoding="utf-8")
    assert paraphrase_columns(tmp_path / "table.csv") == ("text", "paraphrase")
    with pytest.raises(OpencseError, match="is a folder, not a file"):
        paraphrase_settings(tmp_path, {})
    (tmp_path / "other.tsv").write_text("a\tb\n1\t2\n")
    with pytest.raises(OpencseError, match="its columns are a, b"):
        paraphrase_columns(tmp_path / "other.tsv")


@pytest.mark.parametrize(("recipe", "place"), [("osscse", "build.paraphrase"), ("debcse", "build.positive.source")])
def test_a_table_takes_the_place_of_the_recipes_own_candidates(tmp_path, recipe: str, place: str) -> None:
    table = tmp_path / "pairs.tsv"
    table.write_text("text\tcandidate\na\tb\n")
    layer = RecipeFile.read(recipe).layers["with"]["paraphrases"]
    settings = [f"path={table}", "text_column=text", "candidate_column=candidate"]
    assert paraphrase_settings(table, layer) == [f"{place}.{each}" for each in settings]
