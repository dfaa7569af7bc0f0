from __future__ import annotations

import numpy as np
import pytest

from opencse.evaluation import ClassificationTask, LabelledSet, LabelledTexts, evaluate_tasks
from opencse.evaluation.labelled import few_shot_draws
from opencse.foundation.errors import OpencseError


def labelled(count: int, start: int = 0) -> LabelledTexts:
    rows = range(start, start + count)
    return LabelledTexts(texts=[f"t{i}" for i in rows], labels=["abc"[i % 3] for i in rows])


def encode(texts):
    noise = np.random.default_rng(0).normal(size=(len(texts), 5))
    return noise + 9 * np.eye(3, 5)[[int(text[1:]) % 3 for text in texts]]


def test_scores_the_test_part():
    task = ClassificationTask(data=LabelledSet(name="toy", train=labelled(90), test=labelled(30, 90)))
    result = evaluate_tasks(encode, [task])["toy"]
    assert (result.main, result.rows, result.details["examples_per_class"]) == ("accuracy", 30, 8)
    assert result.score == 100
    assert result.metrics["few_shot_accuracy"] > 95
    assert set(result.metrics) == {"accuracy", "f1", "few_shot_accuracy", "few_shot_f1"}


def test_every_draw_has_so_many_of_every_class():
    labels = np.random.default_rng(0).integers(0, 4, 200).tolist()
    draws = few_shot_draws(labels, 8)
    assert len(draws) == 10
    for rows in draws:
        assert len(set(rows)) == 32
        assert np.bincount([labels[row] for row in rows]).tolist() == [8, 8, 8, 8]
    assert len({tuple(sorted(rows)) for rows in draws}) == 10


def test_a_set_without_a_test_part_is_refused():
    with pytest.raises(OpencseError, match="toy has no test part"):
        ClassificationTask(data=LabelledSet(name="toy", train=labelled(9)))
