"""Nearest neighbours against a literal computation, and first hits of one model that another still finds."""

import numpy as np
import pytest

from opencse.evaluation import evaluate_tasks
from opencse.evaluation.neighbours import KeptHitsTask, NeighbourTask, nearest_rows
from opencse.foundation.errors import OpencseError


def test_nearest_rows_are_those_of_a_literal_computation(monkeypatch):
    monkeypatch.setattr("opencse.evaluation.neighbours._BLOCK", 7)
    matrix = np.random.default_rng(0).normal(size=(40, 5))
    rows, cosines = nearest_rows(matrix, 6)
    unit = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    for i, row in enumerate(unit):
        nearest = sorted(set(range(40)) - {i}, key=lambda j: -(row @ unit[j]))
        assert rows[i].tolist() == nearest[:6]
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


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: task(labels=["x"]), "4 texts, 1 labels"),
        (lambda: task(items=["a", "a", "c", "d"]), "occurs twice"),
        (lambda: task(k=4), "4 texts for 4 neighbours"),
        (lambda: KeptHitsTask("own-searches", [], DOCUMENTS), "own-searches: no search"),
        (lambda: KeptHitsTask("own-searches", ["a"], DOCUMENTS[:10]), "own-searches: 10 texts"),
    ],
)
def test_wrong_data_is_named(make, problem):
    with pytest.raises(OpencseError, match=problem):
        make()
