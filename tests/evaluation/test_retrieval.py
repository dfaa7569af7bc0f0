"""Search against literal computations and trec_eval, and first hits of one model that another still finds."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from opencse.evaluation import evaluate_tasks
from opencse.evaluation.retrieval import (
    KeptHitsTask,
    NeighbourTask,
    RetrievalTask,
    measures,
    search,
)
from opencse.foundation.errors import OpencseError
from opencse.foundation.numbers import unit_rows

ANGLES = {"a": 0.0, "b": 0.1, "c": 0.3, "d": 1.0, "e": 2.0}


def encode(texts):
    """Unit vectors in the plane, scaled: lengths must not matter."""
    angles = np.array([ANGLES[text] for text in texts])
    return (
        np.stack([np.cos(angles), np.sin(angles)], axis=1) * np.arange(1, len(texts) + 1)[:, None]
    )


def test_another_similarity_ranks_texts_in_every_task():
    def farthest(first, second):
        return 1 - first @ second.T

    unit = unit_rows(encode([*ANGLES]))
    rows, values = search(unit[:2], unit, 2, np.array([0, 1]), farthest)
    assert rows.tolist() == [[4, 3], [4, 3]]
    np.testing.assert_allclose(values[0], 1 - np.cos([2.0, 1.0]), atol=1e-6)
    rows, _ = search(unit, unit, 4, np.arange(5), farthest)
    assert all(own not in hits for own, hits in enumerate(rows.tolist())), (
        "nor does a query find itself"
    )
    columns = {"queries": ["a"], "corpus": ["b", "c", "e"], "relevant": [{2: 1.0}]}
    (found,) = evaluate_tasks(encode, [RetrievalTask(name="r", **columns)], farthest).results
    assert found.metrics["mrr"] == 100


def test_searching_a_corpus():
    task = RetrievalTask(
        name="r", queries=["a", "c"], corpus=["e", "d", "b"], relevant=[{2: 1.0}, {0: 1.0, 1: 2.0}]
    )
    result = evaluate_tasks(encode, [task])["r"]
    # a: b d e; c: b d e with d and e relevant
    assert result.metrics["mrr"] == pytest.approx(75)
    assert result.metrics["map"] == pytest.approx(100 * (1 + (1 / 2 + 2 / 3) / 2) / 2)
    assert (result.metrics["recall@1"], result.metrics["recall@5"]) == (50, 100)
    assert result.main == "ndcg@10"
    assert result.rows == 2


def test_a_query_does_not_find_itself():
    columns = {"queries": ["a"], "corpus": ["a", "b", "c"], "relevant": [{1: 1.0}]}
    assert evaluate_tasks(encode, [RetrievalTask(name="r", **columns)])["r"].metrics["mrr"] == 50
    found = evaluate_tasks(
        encode, [RetrievalTask(name="r", others_only=True, main="recall@1", **columns)]
    )["r"]
    assert found.score == 100


def test_reordering_candidates():
    columns = {
        "queries": ["a", "e"],
        "corpus": ["d", "b", "a", "b", "d"],
        "relevant": [{1: 1.0}, {2: 1.0}],
    }
    task = RetrievalTask(name="r", candidates=[range(2), range(2, 5)], main="map", **columns)
    result = evaluate_tasks(encode, [task])["r"]
    assert result.metrics["mrr"] == pytest.approx(100 * (1 + 1 / 3) / 2)
    assert result.score == result.metrics["map"]


def test_a_collapsed_model_and_an_impossible_task_have_no_score():
    columns = {"queries": ["a"], "corpus": ["b", "c"], "relevant": [{0: 1.0}]}
    task, search = (
        RetrievalTask(name="r", candidates=[[0, 1]], **columns),
        RetrievalTask(name="s", **columns),
    )
    for result in evaluate_tasks(lambda texts: np.ones((len(texts), 3)), [task, search]).results:
        assert result.score is None
        assert result.undefined["map"] == "the model gives all texts the same score"
    with pytest.raises(OpencseError, match="nothing is relevant to 'b'"):
        RetrievalTask(name="r", queries=["a", "b"], corpus=["c"], relevant=[{0: 1.0}, {0: 0.0}])
    with pytest.raises(OpencseError, match="holds no query"):
        RetrievalTask(name="r", queries=[], corpus=["c"], relevant=[])
    with pytest.raises(OpencseError, match="twice"):
        RetrievalTask(
            name="r", queries=["a"], corpus=["c", "c"], relevant=[{0: 1.0}], others_only=True
        )


@given(st.integers(1, 30), st.integers(0, 2**31), st.booleans())
@settings(max_examples=60, deadline=None)
def test_equal_to_trec_eval_on_random_runs(count, seed, graded):
    pytrec_eval = pytest.importorskip("pytrec_eval", reason="pytrec_eval-terrier is not installed")
    rng = np.random.default_rng(seed)
    grades = rng.integers(0, 4 if graded else 2, count)
    grades[rng.integers(count)] = 1
    scores = (
        rng.permutation(count) + rng.random()
    )  # all distinct: trec_eval's rule for ties is another
    names = [f"d{i}" for i in range(count)]
    wanted = {"map", "map_cut.10", "recip_rank", "ndcg_cut.10", "recall.1,5,10"}
    evaluator = pytrec_eval.RelevanceEvaluator(
        {"q": dict(zip(names, grades.tolist(), strict=True))}, wanted
    )
    theirs = evaluator.evaluate({"q": dict(zip(names, scores.tolist(), strict=True))})["q"]
    ours = measures(scores, grades)
    assert ours["map"] == pytest.approx(theirs["map"], abs=1e-9)
    assert ours["map@10"] == pytest.approx(theirs["map_cut_10"], abs=1e-9)
    assert ours["mrr@10"] == pytest.approx(
        theirs["recip_rank"] * (theirs["recip_rank"] >= 0.1 - 1e-9), abs=1e-9
    )
    assert ours["mrr"] == pytest.approx(theirs["recip_rank"], abs=1e-9)
    assert ours["ndcg@10"] == pytest.approx(theirs["ndcg_cut_10"], abs=1e-9)
    for k in (1, 5, 10):
        assert ours[f"recall@{k}"] == pytest.approx(theirs[f"recall_{k}"], abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(-1, 2)), min_size=1, max_size=12))
@settings(max_examples=100, deadline=None)
def test_ties_are_ranked_against_the_model(items):
    assume(any(grade > 0 for _, grade in items))
    scores, grades = (np.array(column) for column in zip(*items, strict=True))
    order = sorted(range(len(items)), key=lambda i: (-scores[i], max(grades[i], 0)))
    places = [place for place, i in enumerate(order, 1) if grades[i] > 0]
    found = measures(scores, grades)
    assert found["mrr"] == pytest.approx(1 / places[0])
    assert found["map"] == pytest.approx(
        np.mean([count / place for count, place in enumerate(places, 1)])
    )
    gains = [max(grades[i], 0) / np.log2(place + 1) for place, i in enumerate(order[:10], 1)]
    best = [
        grade / np.log2(place + 1)
        for place, grade in enumerate(-np.sort(-grades[grades > 0])[:10], 1)
    ]
    assert found["ndcg@10"] == pytest.approx(sum(gains) / sum(best))


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
    result = evaluate_tasks(lambda _: np.column_stack([np.cos(angles), np.sin(angles)]), [task])[
        "toy"
    ]
    # The last text finds none of its label, and is found by five of the others.
    assert result.score == pytest.approx(100 * (6 * 10 + 5 * 9) / 120)


DOCUMENTS = [f"document {place}" for place in range(12)]


def model(nearness):
    """Documents on the axes; a search lies nearest to the document of the greatest number."""
    vectors = dict(zip(DOCUMENTS, np.eye(12), strict=True)) | nearness
    return lambda texts: np.array([vectors[text] for text in texts])


def test_the_first_model_sets_what_others_must_find():
    task = KeptHitsTask("own-searches", ["a", "b"], DOCUMENTS)
    untouched = model(
        {"a": np.arange(12.0), "b": np.arange(12.0)[::-1]}
    )  # first hits: documents 11 and 0
    assert evaluate_tasks(untouched, [task])["own-searches"].score == 100
    # "a" finds document 11 second; for "b", ten documents are nearer than document 0.
    changed = model({"a": np.array([*range(10), 12.0, 11.0]), "b": np.array([1.5, *range(1, 12)])})
    result = evaluate_tasks(changed, [task])["own-searches"]
    assert result.metrics == {"kept@10": 50, "kept@1": 0}
    assert (result.main, result.rows) == ("kept@10", 2)
    assert evaluate_tasks(untouched, [task])["own-searches"].metrics == {
        "kept@10": 100,
        "kept@1": 100,
    }


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda: NeighbourTask(name="toy", items=["a", "a"], labels=["x", "y"]), "occurs twice"),
        (
            lambda: NeighbourTask(name="toy", items=["a", "b"], labels=["x", "y"]),
            "2 texts for 10 neighbours",
        ),
        (lambda: KeptHitsTask("own-searches", [], DOCUMENTS), "own-searches: no search"),
        (lambda: KeptHitsTask("own-searches", ["a"], DOCUMENTS[:10]), "own-searches: 10 texts"),
    ],
)
def test_wrong_data_is_named(make, problem):
    with pytest.raises(OpencseError, match=problem):
        make()
