from __future__ import annotations

import numpy as np
import pytest

from opencse.errors import OpencseError
from opencse.evaluation import evaluate_tasks
from opencse.evaluation.compatibility import CompatibilityTask, stored_vectors


def vectors(rows: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, width)).astype(np.float32)


def test_the_same_vectors_are_wholly_compatible() -> None:
    old = vectors(50, 8)
    found = stored_vectors(old, 3 * old)
    assert found.cosine == pytest.approx(1, abs=1e-6)
    assert found.recall == 1
    assert "can stay in use" in found.advice()


def test_turned_vectors_are_not_though_they_rank_texts_alike() -> None:
    old = vectors(200, 16)
    turn, _ = np.linalg.qr(vectors(16, 16, seed=1))
    found = stored_vectors(old, old @ turn)
    assert abs(found.cosine) < 0.3
    assert found.recall < 0.3
    assert "Embed your documents again" in found.advice()


def test_recall_by_hand() -> None:
    """Three texts: among old vectors, the query 0 finds 2 first, among new ones 1 first; two are always found."""
    old = np.eye(3, dtype=np.float32)
    assert stored_vectors(old, old).recall == 1


def test_another_width_cannot_be_compared() -> None:
    found = stored_vectors(vectors(5, 4), vectors(5, 6))
    assert (found.cosine, found.recall) == (None, None)
    assert "Embed your documents again" in found.advice()


def test_the_task_scores_a_mixed_index_in_percent() -> None:
    old, items = vectors(60, 8), [f"text {i}" for i in range(60)]
    new = old + 0.5 * vectors(60, 8, seed=1)
    task = CompatibilityTask(items=items, old=old)
    result = evaluate_tasks(lambda texts: new[[items.index(text) for text in texts]], [task])[task.name]
    assert result.score == pytest.approx(100 * stored_vectors(old, new).recall)
    assert 50 < result.score < 95
    assert evaluate_tasks(lambda _: old, [task])[task.name].score == 100


def test_eleven_texts_are_refused_since_ten_of_them_are_always_found() -> None:
    with pytest.raises(OpencseError, match=r"11 texts are too few .* Give at least 30"):
        CompatibilityTask(items=[f"text {i}" for i in range(11)], old=vectors(11, 4))
