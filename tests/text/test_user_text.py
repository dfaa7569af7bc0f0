from __future__ import annotations

import datasets
import pandas as pd
import pyarrow as pa
import pytest

from opencse.foundation.errors import OpencseError
from opencse.text.user_text import UserText, collect_passages, collect_queries

TEXTS = ["Refunds are allowed.", "Guests can edit pages."]


def test_a_corpus_comes_back_as_it_is(tmp_path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("\n".join(TEXTS))
    assert UserText(path).corpus().path == path
    demo = UserText("demo").corpus()
    assert (demo.name, demo.path.name) == ("demo", "sentences.txt")


@pytest.mark.parametrize("column", ["sentence", "Body"])
def test_another_column_is_found_by_its_name(tmp_path, column) -> None:
    path = tmp_path / "table.csv"
    path.write_text(f"id,{column},kind\n1,{TEXTS[0]},a\n2,{TEXTS[1]},b\n")
    found = UserText(path).corpus()
    assert list(found.texts()) == TEXTS
    assert "kind" in found.columns
    assert UserText(path).corpus().path == found.path, "written once"


def test_a_column_that_is_asked_for_wins_over_text(tmp_path) -> None:
    path = tmp_path / "table.tsv"
    path.write_text(f"text\tquote\nx\t{TEXTS[0]}\n")
    assert list(UserText(path, column="quote").corpus().texts()) == TEXTS[:1]


def test_a_column_of_numbers_is_no_text(tmp_path) -> None:
    (tmp_path / "t.csv").write_text("text,remark\n" + "".join(f"{i},The lamp {i} is on.\n" for i in range(9)))
    with pytest.raises(OpencseError, match="no cell of the column 'text' has a letter"):
        UserText(tmp_path / "t.csv").corpus()
    assert len(list(UserText(tmp_path / "t.csv", "remark").corpus().texts())) == 9


def test_columns_of_unknown_names_are_refused(tmp_path) -> None:
    path = tmp_path / "table.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(OpencseError, match=r"which column holds the text.*`--column`"):
        UserText(path).corpus()
    with pytest.raises(OpencseError, match="no column 'c'"):
        UserText(path, column="c").corpus()


@pytest.mark.parametrize(
    "given",
    [
        TEXTS,
        tuple(TEXTS),
        pd.DataFrame({"body": TEXTS, "number": [1, 2]}),
        datasets.Dataset.from_dict({"sentence": TEXTS}),
        pa.table({"text": TEXTS}),
    ],
    ids=["list", "tuple", "frame", "dataset", "table"],
)
def test_texts_in_memory(given) -> None:
    assert list(UserText(given).corpus().texts()) == TEXTS
    assert [passage.text for passage in collect_passages(given)] == TEXTS


@pytest.mark.parametrize("given", [7, {"text": TEXTS}, ["a", 3]])
def test_other_things_are_refused(given) -> None:
    with pytest.raises(OpencseError):
        UserText(given).corpus()


def test_documents_become_sentences(tmp_path) -> None:
    path = tmp_path / "page.md"
    path.write_text("# Rules\n\nRefunds are allowed. Guests can edit pages. Refunds are allowed.")
    assert list(UserText(path).corpus().texts()) == TEXTS, "none twice, and no heading"


def test_paragraphs_in_a_table_become_sentences(tmp_path) -> None:
    path = tmp_path / "table.csv"
    cell = " ".join(f"This is sentence number {i} of it." for i in range(10))
    path.write_text(f"text\n{cell}\n")
    assert len(list(UserText(path).corpus().texts())) == 10


def test_a_table_that_is_to_keep_its_columns_is_not_split(tmp_path) -> None:
    path = tmp_path / "table.csv"
    cell = " ".join(f"This is sentence number {i} of it." for i in range(10))
    path.write_text(f"text,negation\n{cell},No.\n")
    assert UserText(path).corpus(split=False).path == path
    assert UserText(path).corpus(needed=["negation", "paraphrase"]).path == path
    split = UserText(path).corpus(needed=["paraphrase"])
    assert split.path != path
    assert len(list(split.texts())) == 10


def test_queries(tmp_path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("user,query\n1,can I get a refund\n2,can I get a refund\n3,who can edit\n")
    assert collect_queries(path) == ["can I get a refund", "who can edit"]
    assert collect_queries([str(i) for i in range(1000)])[:3] == ["0", "5", "10"]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["", " "], r"texts in memory \(list\): no text"),  # and not the name of a file in the cache
        (pd.DataFrame({"a": ["x"], "b": ["y"]}), "Name it with `column=`"),  # no option of the command line
        (pd.DataFrame({"n": [1, 2]}), r"no column of strings: n \(int64\)"),
    ],
)
def test_what_is_wrong_with_texts_in_memory_is_said_in_python(given, message) -> None:
    with pytest.raises(OpencseError, match=message):
        collect_passages(given)


@pytest.mark.parametrize(
    "given",
    [
        pd.DataFrame({"id": [1, 2], "query": ["a", "b"]}),
        datasets.Dataset.from_dict({"search": ["a", "b"]}),
        pd.Series(["a", "b"]),
        [None, "a", "b", "a"],
    ],
)
def test_queries_in_memory(given) -> None:
    assert collect_queries(given) == ["a", "b"]


@pytest.mark.parametrize("given", [[1, 2], {"query": ["a"]}, 3, ["\ud800"], [" "]])
def test_things_that_are_no_queries_are_refused(given) -> None:
    with pytest.raises(OpencseError):
        collect_queries(given)


def test_categories_are_texts() -> None:
    assert list(UserText(pd.DataFrame({"text": pd.Series(TEXTS, dtype="category")})).corpus().texts()) == TEXTS
    assert list(UserText(pd.DataFrame({"text": [*TEXTS, float("nan"), None]})).corpus().texts()) == TEXTS


@pytest.mark.parametrize(
    "given",
    [
        pd.DataFrame([["a", "b"]], columns=["text", "text"]),
        pd.DataFrame({"text": ["a", 3]}),
        datasets.DatasetDict({"train": datasets.Dataset.from_dict({"text": TEXTS})}),
        datasets.Dataset.from_dict({"text": TEXTS}).to_iterable_dataset(),
        ["\ud800"],
    ],
)
def test_tables_that_hold_no_texts_are_refused(given) -> None:
    with pytest.raises(OpencseError):
        UserText(given).corpus()
