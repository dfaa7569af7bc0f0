"""Guard tasks: the bundled ones, a folder of one's own, and what is wrong with one."""

import numpy as np
import pytest

from opencse.evaluation import evaluate_tasks, load_guard
from opencse.evaluation.guard import GUARD_TASKS
from opencse.foundation.errors import OpencseError


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
    (tmp_path / "questions.tsv").write_text("group\tquestion\n1\taab\n1\taabb\n2\tcd\n2\tccd\n2\tcdd\n")
    (tmp_path / "answers.tsv").write_text("question\tpassage\ng\tgg\n\tabc\n")
    (tmp_path / "long.tsv").write_text(
        "summary\ttext\nabc\tAb ab ab ab ab. Go. Ac ac ac ac ac.\nfgh\tFg fg fg fg fg fg.\n"
    )
    questions, answers, long = load_guard(tmp_path)
    assert [dict(each) for each in questions.relevant] == [{1: 1}, {0: 1}, {3: 1, 4: 1}, {2: 1, 4: 1}, {2: 1, 3: 1}]
    assert (answers.queries, answers.corpus, answers.relevant) == (["g"], ["gg", "abc"], [{0: 1.0}])
    assert long.queries == ["abc", "Ab ab ab ab ab.", "Ac ac ac ac ac.", "fgh", "Fg fg fg fg fg fg."]
    assert [next(iter(each)) for each in long.relevant] == [0, 0, 0, 1, 1]
    assert evaluate_tasks(encode, [questions, answers, long])["guard-questions"].metrics["mrr"] == 100


def test_searches_without_labels_search_the_documents_beside_them_or_those_given(tmp_path):
    searches, given = tmp_path / "searches.txt", [f"gg {place}" for place in range(20)]
    searches.write_text("ab\n\nab\n cd  ef\n")
    (alone,) = load_guard(searches, prefix="own", documents=given)
    assert (alone.name, list(alone.texts())) == ("own-searches", ["ab", "cd ef", *given])
    with pytest.raises(OpencseError, match="no texts to search"):
        load_guard(tmp_path)
    (tmp_path / "documents.txt").write_text("".join(f"{letter}\n" for letter in "abcdefghijkl"))
    (own,) = load_guard(tmp_path, documents=given)
    assert list(own.texts()) == ["ab", "cd ef", *"abcdefghijkl"]
    assert evaluate_tasks(encode, [own])["guard-searches"].score == 100
    table = tmp_path / "log.csv"
    table.write_text("when,query\n1,ab\n2,cd\n")
    (logged,) = load_guard(table, documents=given)
    assert list(logged.texts())[:2] == ["ab", "cd"]


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
