from __future__ import annotations

import json

import numpy as np
import pytest

from opencse.evaluation import evaluate_tasks, sts
from opencse.evaluation.retrieval import load_reranking, load_retrieval
from opencse.evaluation.suites import SUITES, load_suites
from opencse.evaluation.written_sets import GUARD_TASKS, load_guard, read_triplets
from opencse.foundation.errors import OpencseError
from opencse.foundation.roles import plain


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
    lines(
        tmp_path / "order" / "test.jsonl", {"query": "a", "positive": ["b"], "negative": ["c", "d"]}
    )
    search = tmp_path / "search"
    lines(search / "corpus.jsonl", {"_id": 1, "title": "c", "text": "d"}, {"_id": "2", "text": "b"})
    lines(search / "queries.jsonl", {"_id": "q", "text": "a"}, {"_id": "unjudged", "text": "z"})
    (search / "qrels").mkdir()
    (search / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\t2\t1\nq\t1\t0\n")
    return tmp_path


def test_tasks_and_folders_by_name(data):
    suites = load_suites(
        ["search", "order", "topics", "STS-B", "geometry", "retrieval"], data, text="raw"
    )
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

    results = evaluate_tasks(encode, [task for members in suites.values() for task in members])
    assert len(calls) == 1
    assert len(set(calls[0])) == len(calls[0])
    assert set(calls[0]) == {*"abcdef", "c d"}
    assert results["geometry of STS-B dev"].score is None


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
    for row in (
        {"query": "a", "positive": [], "negative": ["b"]},
        {"query": "a", "positive": "b", "negative": ["c"]},
    ):
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
    for names, message in (
        (["guard", "sts"], "no data was given for the tasks"),
        (["mine"], "no task 'mine'"),
    ):
        with pytest.raises(OpencseError, match=message):
            load_suites(names, None)


TABLE = """id\tkind\tanchor\tpositive\tnegative
a\tverb\tone\tuno\tnot one
b\tverb\ttwo\tdue\tnot two
c\tnoun\tthree\ttre\tnot three
"""


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "mine.tsv"
    file.write_text(TABLE)
    return file


def on_a_circle(angles):
    return lambda texts: np.array([[np.cos(angles[text]), np.sin(angles[text])] for text in texts])


ANGLES = {"one": 0, "uno": 0.1, "not one": 0.5, "two": 0, "due": 0.5, "not two": 0.1}
ANGLES |= {"three": 0, "tre": 0.3, "not three": 0.3}


def scored(path):
    return evaluate_tasks(on_a_circle(ANGLES), [read_triplets(path)])["mine"]


def test_accuracy_by_group_with_a_tie_as_wrong_and_a_hash_of_the_rows(path):
    result = scored(path)
    assert result.metrics == pytest.approx({"accuracy": 100 / 3, "kind: verb": 50, "kind: noun": 0})
    assert (result.main, result.rows) == ("accuracy", 3)
    assert result.details["rows"] == {"kind: verb": 2, "kind: noun": 1}
    path.write_text(TABLE.replace("c\tnoun", "c\tverb"))
    assert scored(path).data_sha256 != result.data_sha256


def test_triplets_without_an_id_are_named_by_their_line(tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("anchor,positive,negative\none,uno,not one\n")
    (triplet,) = read_triplets(file).triplets
    assert triplet.id == "line 2"
    assert triplet.groups == {}


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("anchor", "query", "line 2: no anchor among"),
        ("uno", " ", "line 2: no positive"),
        ("verb\ttwo", "\ttwo", "line 3: no kind"),
        ("b\t", "a\t", "line 3: the id 'a' occurs twice"),
        ("not three", "tre", "line 4: two of the three texts are equal"),
        (TABLE.partition("\n")[2], "", "holds no row"),
    ],
)
def test_a_wrong_file_is_named_with_its_line(path, old, new, problem):
    path.write_text(TABLE.replace(old, new))
    with pytest.raises(OpencseError, match=problem):
        read_triplets(path)


def encode(texts):
    """A hash of letters: two texts are near if they share letters."""
    return np.array([[text.count(letter) + 0.01 for letter in "abcdefgh"] for text in texts])


def test_the_bundled_guard_has_four_tasks_that_any_model_can_be_scored_on():
    results = evaluate_tasks(encode, load_guard())
    assert tuple(result.task for result in results.results) == GUARD_TASKS
    assert {result.task: result.main for result in results.results} == {
        "guard-questions": "mrr",
        "guard-answers": "mrr",
        "guard-topics": "precision@10",
        "guard-long": "mrr",
    }
    assert all(0 < result.score < 60 for result in results.results)


def test_a_folder_may_hold_some_of_the_tables(tmp_path):
    (tmp_path / "questions.tsv").write_text(
        "group\tquestion\n1\taab\n1\taabb\n2\tcd\n2\tccd\n2\tcdd\n"
    )
    (tmp_path / "answers.tsv").write_text("question\tpassage\ng\tgg\n\tabc\n")
    (tmp_path / "long.tsv").write_text(
        "summary\ttext\nabc\tAb ab ab ab ab. Go. Ac ac ac ac ac.\nfgh\tFg fg fg fg fg fg.\n"
    )
    questions, answers, long = load_guard(tmp_path)
    assert [dict(each) for each in questions.relevant] == [
        {1: 1},
        {0: 1},
        {3: 1, 4: 1},
        {2: 1, 4: 1},
        {2: 1, 3: 1},
    ]
    assert (answers.queries, answers.corpus, answers.relevant) == (["g"], ["gg", "abc"], [{0: 1.0}])
    assert long.queries == [
        "abc",
        "Ab ab ab ab ab.",
        "Ac ac ac ac ac.",
        "fgh",
        "Fg fg fg fg fg fg.",
    ]
    assert [next(iter(each)) for each in long.relevant] == [0, 0, 0, 1, 1]
    assert (
        evaluate_tasks(encode, [questions, answers, long])["guard-questions"].metrics["mrr"] == 100
    )


def test_searches_without_labels_search_the_documents_beside_them_or_those_given(tmp_path):
    searches, given = tmp_path / "searches.txt", [f"gg {place}" for place in range(20)]
    searches.write_text("ab\n\nab\n cd  ef\n")
    (alone,) = load_guard(searches, prefix="own", documents=given)
    assert (alone.name, [*map(plain, alone.texts())]) == ("own-searches", ["ab", "cd ef", *given])
    with pytest.raises(OpencseError, match="no texts to search"):
        load_guard(tmp_path)
    (tmp_path / "documents.txt").write_text("".join(f"{letter}\n" for letter in "abcdefghijkl"))
    (own,) = load_guard(tmp_path, documents=given)
    assert [*map(plain, own.texts())] == ["ab", "cd ef", *"abcdefghijkl"]
    assert evaluate_tasks(encode, [own])["guard-searches"].score == 100
    table = tmp_path / "log.csv"
    table.write_text("when,query\n1,ab\n2,cd\n")
    (logged,) = load_guard(table, documents=given)
    assert [*map(plain, logged.texts())][:2] == ["ab", "cd"]


@pytest.mark.parametrize(
    ("table", "text", "problem"),
    [
        ("other.tsv", "a\n1\n", "holds no guard"),
        ("questions.tsv", "group\tquestion\n1\tone\n", "the group '1' has one question"),
        ("answers.tsv", "question\tpassage\nwho\t \n", "line 2: no passage"),
        ("topics.tsv", "label\ttext\nx\tone\n", "line 2: no topic"),
    ],
)
def test_a_wrong_folder_is_named(tmp_path, table, text, problem):
    (tmp_path / table).write_text(text)
    with pytest.raises(OpencseError, match=problem):
        load_guard(tmp_path)
