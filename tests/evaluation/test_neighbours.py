"""Nearest neighbours against a literal computation, and first hits of one model that another still finds."""

import numpy as np
import pytest

from opencse.evaluation import evaluate_tasks
from opencse.evaluation.neighbours import KeptHitsTask, NeighbourTask, nearest_rows
from opencse.foundation.errors import OpencseError


def literal_neighbours(matrix, k):
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    found = []
    for i, row in enumerate(unit):
        cosines = {j: float(row @ other) for j, other in enumerate(unit) if j != i}
        found.append(sorted(cosines, key=lambda j: -cosines[j])[:k])
    return np.array(found)


def test_nearest_rows_are_those_of_a_literal_computation(monkeypatch):
    monkeypatch.setattr("opencse.evaluation.neighbours._BLOCK", 7)
    matrix = np.random.default_rng(0).normal(size=(40, 5))
    rows, cosines = nearest_rows(matrix, 6)
    assert (rows == literal_neighbours(matrix, 6)).all()
    assert (np.diff(cosines, axis=1) <= 0).all()


def task(**change):
    settings = {"name": "toy", "items": ["a", "b", "c", "d"], "labels": ["x", "x", "y", "x"], "k": 1}
    return NeighbourTask(**{**settings, **change})


@pytest.mark.parametrize(
    ("change", "main"), [({}, "accuracy"), ({"k": 3, "main": "precision@3"}, "precision@3"), ({"k": 2}, "accuracy")]
)
def test_texts_are_classified_by_their_neighbours(change, main):
    vectors = {"a": [1, 0], "b": [1, 0.1], "c": [0, 1], "d": [0.1, 1]}
    chosen = task(**change)
    encode = lambda texts: np.array([vectors[text] for text in texts], dtype=float)  # noqa: E731
    result = evaluate_tasks(encode, [chosen])["toy"]
    near = {1: "b a d c", 2: "bd ad da cb", 3: "bdc adc dba cba"}[chosen.k].split()
    labels = dict(zip("abcd", "xxyx", strict=True))
    same = [labels[text] == labels[own] for own, found in zip("abcd", near, strict=True) for text in found]
    assert result.metrics[f"precision@{chosen.k}"] == pytest.approx(100 * np.mean(same))
    assert (result.main, result.rows, result.details["labels"]) == (main, 4, 2)
    assert result.score == result.metrics[main]
    assert chosen.k > 1 or result.metrics["accuracy"] == 50


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"labels": ["x"]}, "4 texts, 1 labels"),
        ({"items": ["a", "a", "c", "d"]}, "occurs twice"),
        ({"k": 4}, "4 texts for 4 neighbours"),
    ],
)
def test_wrong_data_is_named(change, problem):
    with pytest.raises(OpencseError, match=problem):
        task(**change)


DOCUMENTS = [f"document {place}" for place in range(12)]


def model(nearness):
    """Documents on the axes; a search lies nearest to the document of the greatest number."""
    vectors = dict(zip(DOCUMENTS, np.eye(12), strict=True)) | nearness
    return lambda texts: np.array([vectors[text] for text in texts])


def test_the_first_model_sets_what_others_must_find():
    task = KeptHitsTask("own-searches", ["a", "b"], DOCUMENTS)
    untouched = model({"a": np.arange(12.0), "b": np.arange(12.0)[::-1]})  # first hits: documents 11 and 0
    assert evaluate_tasks(untouched, [task])["own-searches"].score == 100
    # "a" finds document 11 second; for "b", ten documents are nearer than document 0.
    changed = model({"a": np.array([*range(10), 12.0, 11.0]), "b": np.array([1.5, *range(1, 12)])})
    result = evaluate_tasks(changed, [task])["own-searches"]
    assert result.metrics == {"kept@10": 50, "kept@1": 0}
    assert (result.main, result.rows) == ("kept@10", 2)
    assert evaluate_tasks(untouched, [task])["own-searches"].metrics == {"kept@10": 100, "kept@1": 100}


@pytest.mark.parametrize(("queries", "documents"), [([], DOCUMENTS), (["a"], DOCUMENTS[:10])])
def test_too_little_is_refused(queries, documents):
    with pytest.raises(OpencseError, match="own-searches"):
        KeptHitsTask("own-searches", queries, documents)
