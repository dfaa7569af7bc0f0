"""Nearest neighbours against a literal computation, and first hits of one model that another still finds."""

import numpy as np
import pytest

from opencse.evaluation import evaluate_tasks
from opencse.evaluation.retrieval import KeptHitsTask, NeighbourTask, search
from opencse.foundation.errors import OpencseError
from opencse.foundation.numbers import unit_rows


@pytest.mark.parametrize("own", [False, True])
def test_hits_are_those_of_a_literal_computation(monkeypatch, own):
    monkeypatch.setattr("opencse.evaluation.retrieval._BLOCK", 7)
    unit = unit_rows(np.random.default_rng(0).normal(size=(40, 5)))
    rows, cosines = search(unit, unit, 6, np.arange(40) if own else None)
    for i, row in enumerate(unit):
        nearest = sorted(set(range(40)) - ({i} if own else set()), key=lambda j: -(row @ unit[j]))
        assert rows[i].tolist() == nearest[:6]
    assert (np.diff(cosines, axis=1) <= 0).all()


def test_the_share_of_the_ten_nearest_with_the_same_label():
    items = [str(place) for place in range(12)]
    task = NeighbourTask(name="toy", items=items, labels=["x"] * 11 + ["y"])
    angles = np.linspace(0, 1, 12)
    result = evaluate_tasks(lambda _: np.column_stack([np.cos(angles), np.sin(angles)]), [task])["toy"]
    # The last text finds none of its label, and is found by five of the others.
    assert result.score == pytest.approx(100 * (6 * 10 + 5 * 9) / 120)


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
        (lambda: NeighbourTask(name="toy", items=["a", "a"], labels=["x", "y"]), "occurs twice"),
        (lambda: NeighbourTask(name="toy", items=["a", "b"], labels=["x", "y"]), "2 texts for 10 neighbours"),
        (lambda: KeptHitsTask("own-searches", [], DOCUMENTS), "own-searches: no search"),
        (lambda: KeptHitsTask("own-searches", ["a"], DOCUMENTS[:10]), "own-searches: 10 texts"),
    ],
)
def test_wrong_data_is_named(make, problem):
    with pytest.raises(OpencseError, match=problem):
        make()
