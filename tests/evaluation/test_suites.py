from __future__ import annotations

import json

import numpy as np
import pytest

from opencse.evaluation import evaluate_suites, load_suites, sts
from opencse.evaluation.retrieval import load_reranking, load_retrieval
from opencse.evaluation.suites import SUITES
from opencse.foundation.errors import OpencseError


def lines(path, *rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.fixture
def data(tmp_path, monkeypatch):
    """One small task of every kind."""
    monkeypatch.setattr(sts, "PUBLISHED_ROWS", {("STS-B", "test"): 4, ("STS-B", "dev"): 4})
    stsb = "score\tsentence1\tsentence2\n5\ta\tb\n5.0\ta\tc\n1\tc\td\n0\te\tf\n"
    (tmp_path / "STSB").mkdir()
    for split in ("test", "dev"):
        (tmp_path / "STSB" / f"{split}.tsv").write_text(stsb)
    (tmp_path / "topics").mkdir()
    for part in ("train", "test"):
        (tmp_path / "topics" / f"{part}.tsv").write_text("label\ttext\nx\ta\ny\tb\nx\tc\ny\td\n")
    lines(tmp_path / "order" / "test.jsonl", {"query": "a", "positive": ["b"], "negative": ["c", "d"]})
    search = tmp_path / "search"
    lines(search / "corpus.jsonl", {"_id": 1, "title": "c", "text": "d"}, {"_id": "2", "text": "b"})
    lines(search / "queries.jsonl", {"_id": "q", "text": "a"}, {"_id": "unjudged", "text": "z"})
    (search / "qrels").mkdir()
    (search / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\t2\t1\nq\t1\t0\n")
    return tmp_path


def test_tasks_and_folders_by_name(data):
    suites = load_suites(["search", "order", "topics", "STS-B", "geometry", "retrieval"], data, text="raw")
    assert {suite: [task.name for task in tasks] for suite, tasks in suites.items()} == {
        "retrieval": ["search", "STSB-97"],
        "reranking": ["order"],
        "classification": ["topics"],
        "sts": ["STS-B"],
        "geometry": ["geometry of STS-B dev", "geometry of STS-B test"],
    }
    calls = []

    def encode(texts):
        calls.append(list(texts))
        return np.random.default_rng(0).normal(size=(len(texts), 3))

    results = evaluate_suites(encode, suites)
    assert len(calls) == 1
    assert len(set(calls[0])) == len(calls[0])
    assert set(calls[0]) == {*"abcdef", "c d"}
    assert results["geometry"].average is None


def test_a_suite_is_all_its_tasks(data):
    with pytest.raises(OpencseError, match="STS12"):
        load_suites(["sts"], data, text="raw")
    assert len(SUITES["transfer"]) == 7
    with pytest.raises(OpencseError, match="no task 'STS17'"):
        load_suites(["STS17"], data)


def test_diffcse_searches_in_both_directions(data):
    task = load_retrieval(data, "STSB-97", text="raw")
    assert task.queries == ["a", "b", "a", "c"]
    assert [task.corpus[next(iter(found))] for found in task.relevant] == ["b", "a", "c", "a"]
    assert (task.others_only, task.main, len(task.corpus)) == (True, "recall@1", 6)


def test_beir_layout(data):
    task = load_retrieval(data, "search")
    assert (task.queries, task.corpus, task.relevant) == (["a"], ["c d", "b"], [{1: 1.0}])
    qrels = data / "search" / "qrels" / "test.tsv"
    for row, message in (
        ("q\t3\t1", "no text '3'"),
        ("p\t2\t1", "no text 'p'"),
        ("q\t2\tyes", "'yes' is not a number"),
    ):
        qrels.write_text(f"query-id\tcorpus-id\tscore\n{row}\n")
        with pytest.raises(OpencseError, match=message):
            load_retrieval(data, "search")
    qrels.write_text("query-id\tcorpus-id\tscore\nq\t2\t0\n")
    with pytest.raises(OpencseError, match="holds no query"):
        load_retrieval(data, "search")
    (data / "search" / "queries.jsonl").write_text('{"_id": "q"}\n')
    with pytest.raises(OpencseError, match=r"queries\.jsonl, line 1: no text among _id"):
        load_retrieval(data, "search")
    with pytest.raises(OpencseError, match="no folder elsewhere"):
        load_retrieval(data, "elsewhere")


def test_reranking_rows_that_are_wrong(data):
    for row in ({"query": "a", "positive": [], "negative": ["b"]}, {"query": "a", "positive": "b", "negative": ["c"]}):
        lines(data / "order" / "test.jsonl", row)
        with pytest.raises(OpencseError, match="the row of 'a'"):
            load_reranking(data, "order")


def test_97_pairs(data_folder):
    task = load_retrieval(data_folder, "STSB-97")
    assert (len(task.queries), len(task.corpus)) == (194, 2551)


def test_bundled_suites_alone_need_no_data():
    suites = load_suites(["development", "guard-topics"], None)
    assert [task.name for task in suites["development"]] == list(SUITES["development"])
    assert [task.name for task in suites["guard"]] == ["guard-topics"]
    for names, message in ((["guard", "sts"], "no data was given for the tasks"), (["mine"], "no task 'mine'")):
        with pytest.raises(OpencseError, match=message):
            load_suites(names, None)
