"""The curve of a meaning block's strength, and the largest one that harms no task."""

import numpy as np
from strength import largest_strength, strength_curve

from opencse.evaluation.triplets import Triplet, TripletSet, TripletTask

# The old vectors have the contradiction nearer; the meaning vectors have it opposite.
VECTORS = {
    "anchor": [1.0, 0.0, 1.0, 0.0],
    "same": [0.8, 0.6, 1.0, 0.0],
    "opposed": [0.96, 0.28, -1.0, 0.0],
}


def encode(texts):
    asked.append(list(texts))
    return np.array([VECTORS[text] for text in texts], np.float32) / np.sqrt(2, dtype=np.float32)


asked: list[list[str]] = []


def test_every_text_is_encoded_once_and_meaning_sets_in_with_strength():
    asked.clear()
    triplet = Triplet(id="1", anchor="anchor", positive="same", negative="opposed", groups={})
    task = TripletTask(data=TripletSet(name="meaning", triplets=(triplet,)))
    curve = strength_curve(encode, [task], (0.0, 0.1, 0.3, 1.0))
    assert asked == [["anchor", "same", "opposed"]]
    # 0.8 + β² > 0.96 - β² from β² = 0.08 on.
    assert curve == {0.0: {"meaning": 0.0}, 0.1: {"meaning": 0.0}, 0.3: {"meaning": 100.0}, 1.0: {"meaning": 100.0}}


def test_largest_strength_is_one_at_which_no_task_loses_more_than_the_tolerance():
    curve = {
        0.0: {"a": 50.0, "b": 80.0},
        0.1: {"a": 51.0, "b": 79.8},
        0.2: {"a": 49.8, "b": 79.8},
        0.3: {"a": 52.0, "b": 79.6},
        0.4: {"a": 53.0, "b": 79.0},
    }
    assert largest_strength(curve) == 0.2
    assert largest_strength(curve, 0.5) == 0.3
    assert largest_strength(curve, 1.0) == 0.4
    assert largest_strength({0.0: {"a": 1.0}, 0.1: {"a": 0.0}}) == 0.0
