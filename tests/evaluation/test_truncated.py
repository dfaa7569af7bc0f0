from __future__ import annotations

import numpy as np
import pytest

from opencse.evaluation import evaluate_tasks
from opencse.evaluation.neighbours import NeighbourTask
from opencse.evaluation.truncated import TruncatedTask

TEXTS = ["a", "b", "c", "d"]


def encode(texts) -> np.ndarray:
    """Neighbours by the first two dimensions are a-b and c-d, by all of them a-c and b-d."""
    vectors = {"a": [1, 0, 9, 0], "b": [1, 0, 0, 9], "c": [0, 1, 9, 0], "d": [0, 1, 0, 9]}
    return np.array([vectors[text] for text in texts], dtype=np.float32)


def test_only_the_first_dimensions_count() -> None:
    task = NeighbourTask(name="topics", items=TEXTS, labels=["x", "x", "y", "y"], k=1, main="accuracy")
    whole, cut = evaluate_tasks(encode, [task, TruncatedTask(task=task, dimensions=2)]).results
    assert (whole.task, cut.task) == ("topics", "topics at 2 dimensions")
    assert (whole.score, cut.score) == (0, pytest.approx(100))
    assert cut.data_sha256 == whole.data_sha256
