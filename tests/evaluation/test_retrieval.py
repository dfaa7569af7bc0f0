from __future__ import annotations

import numpy as np
import pytest

from opencse.evaluation import RetrievalTask, evaluate_tasks
from opencse.foundation.errors import OpencseError

ANGLES = {"a": 0.0, "b": 0.1, "c": 0.3, "d": 1.0, "e": 2.0}


def encode(texts):
    """Unit vectors in the plane, scaled: lengths must not matter."""
    angles = np.array([ANGLES[text] for text in texts])
    return np.stack([np.cos(angles), np.sin(angles)], axis=1) * np.arange(1, len(texts) + 1)[:, None]


def test_searching_a_corpus():
    task = RetrievalTask(name="r", queries=["a", "c"], corpus=["e", "d", "b"], relevant=[{2: 1.0}, {0: 1.0, 1: 2.0}])
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
    found = evaluate_tasks(encode, [RetrievalTask(name="r", others_only=True, main="recall@1", **columns)])["r"]
    assert found.score == 100


def test_reordering_candidates():
    columns = {"queries": ["a", "e"], "corpus": ["d", "b", "a", "b", "d"], "relevant": [{1: 1.0}, {2: 1.0}]}
    task = RetrievalTask(name="r", candidates=[range(2), range(2, 5)], main="map", **columns)
    result = evaluate_tasks(encode, [task])["r"]
    assert result.metrics["mrr"] == pytest.approx(100 * (1 + 1 / 3) / 2)
    assert result.score == result.metrics["map"]


def test_a_collapsed_model_has_no_score():
    columns = {"queries": ["a"], "corpus": ["b", "c"], "relevant": [{0: 1.0}]}
    task, search = RetrievalTask(name="r", candidates=[[0, 1]], **columns), RetrievalTask(name="s", **columns)
    for result in evaluate_tasks(lambda texts: np.ones((len(texts), 3)), [task, search]).results:
        assert result.score is None
        assert result.undefined["map"] == "the model gives all texts the same score"


def test_impossible_tasks():
    with pytest.raises(OpencseError, match="nothing is relevant to 'b'"):
        RetrievalTask(name="r", queries=["a", "b"], corpus=["c"], relevant=[{0: 1.0}, {0: 0.0}])
    with pytest.raises(OpencseError, match="holds no query"):
        RetrievalTask(name="r", queries=[], corpus=["c"], relevant=[])
    with pytest.raises(OpencseError, match="twice"):
        RetrievalTask(name="r", queries=["a"], corpus=["c", "c"], relevant=[{0: 1.0}], others_only=True)
