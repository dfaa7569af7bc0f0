from __future__ import annotations

import numpy as np
import pytest

from opencse.evaluation import RerankingTask, RetrievalTask, evaluate_tasks
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
    task = RerankingTask(
        name="r", queries=["a", "e"], candidates=[["d", "b"], ["a", "b", "d"]], relevance=[[0, 1], [1, 0, 0]]
    )
    result = evaluate_tasks(encode, [task])["r"]
    assert result.metrics["mrr"] == pytest.approx(100 * (1 + 1 / 3) / 2)
    assert result.score == result.metrics["map"]


def test_a_collapsed_model_has_no_score():
    task = RerankingTask(name="r", queries=["a"], candidates=[["b", "c"]], relevance=[[1, 0]])
    search = RetrievalTask(name="s", queries=["a"], corpus=["b", "c"], relevant=[{0: 1.0}])
    for result in evaluate_tasks(lambda texts: np.ones((len(texts), 3)), [task, search]).results:
        assert result.score is None
        assert result.undefined["map"] == "the model gives all texts the same score"


def test_impossible_tasks():
    with pytest.raises(OpencseError, match="nothing is relevant to 'b'"):
        RetrievalTask(name="r", queries=["a", "b"], corpus=["c"], relevant=[{0: 1.0}, {0: 0.0}])
    with pytest.raises(OpencseError, match="holds no query"):
        RerankingTask(name="r", queries=[], candidates=[], relevance=[])
    with pytest.raises(OpencseError, match="2 candidates, 1 grades"):
        RerankingTask(name="r", queries=["a"], candidates=[["b", "c"]], relevance=[[1]])
    with pytest.raises(OpencseError, match="twice"):
        RetrievalTask(name="r", queries=["a"], corpus=["c", "c"], relevant=[{0: 1.0}], others_only=True)
