"""ListNet and ListMLE."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from opencse.losses import ListMLELoss, ListNetLoss
from tests.losses.checks import draw, run
from tests.reference.ranking import permutation_probability

VIEWS = ("anchor", "twin")
TEACHERS = {"a": draw(VIEWS, 6, 3, seed=7), "b": draw(VIEWS, 6, 5, seed=8)}


def with_scores(term, student: np.ndarray, teacher: np.ndarray) -> float:
    """The term on given matrices of cosines, which the identity as candidates reproduces."""
    n = len(student)
    arrays = {"anchor": student, "twin": np.eye(n)}
    return run(term, arrays, teachers={"a": {"anchor": teacher, "twin": np.eye(n)}})[0]


def unit_rows(seed: int, n: int) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(n, n))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@given(st.integers(0, 10_000), st.integers(2, 5))
@settings(deadline=None, max_examples=25)
def test_list_mle_is_the_probability_of_the_permutation(seed: int, n: int) -> None:
    student, teacher = unit_rows(seed, n), unit_rows(seed + 1, n)
    expected = [-math.log(permutation_probability(s / 0.3, np.argsort(-t))) for s, t in zip(student, teacher)]
    assert with_scores(ListMLELoss(temperature=0.3), student, teacher) == pytest.approx(np.mean(expected), abs=1e-9)


@pytest.mark.parametrize("term", [ListMLELoss(), ListNetLoss(), ListMLELoss(epsilon=1e-7)])
def test_finite_for_extreme_lists_of_512_in_fp32(term) -> None:
    n = 512
    signs = np.where(np.random.default_rng(0).random((n, 2)) < 0.5, -1.0, 1.0) + 1e-3
    arrays = {"anchor": signs, "twin": signs[::-1].copy()}
    known = {"a": {"anchor": -signs, "twin": signs}}
    loss, gradients, _ = run(term, arrays, teachers=known, dtype=torch.float32)
    assert np.isfinite(loss)
    assert all(np.isfinite(g).all() for g in gradients.values())


def test_the_coded_list_mle_pushes_up_what_is_far_below_the_maximum() -> None:
    """Its epsilon swamps the sum: the order among the lowest candidates makes no difference any more."""
    student = np.array([[1.0, -0.9, -0.95]])
    orders = [np.array([[3.0, 2.0, 1.0]]), np.array([[3.0, 1.0, 2.0]])]

    def value(term, teacher):
        arrays = {"anchor": student, "twin": np.eye(3)}
        has = {"anchor": np.array([True, False, False])}
        arrays["anchor"] = np.vstack([student, np.zeros((2, 3))])
        known = {"a": {"anchor": np.vstack([teacher, np.zeros((2, 3))]), "twin": np.eye(3)}}
        return run(term, arrays, has, known)[0]

    coded = [value(ListMLELoss(epsilon=1e-7), o) for o in orders]
    exact = [value(ListMLELoss(), o) for o in orders]
    assert abs(coded[0] - coded[1]) < 1e-3 < abs(exact[0] - exact[1])


def test_teachers_weights_are_scaled_and_equal_by_default() -> None:
    arrays = draw(VIEWS, 6)
    both = {"a": TEACHERS["a"], "b": TEACHERS["b"]}
    equal = run(ListNetLoss(teachers=("a", "b")), arrays, teachers=both)[0]
    assert run(ListNetLoss(teachers=("a", "b"), teacher_weights=(3.0, 3.0)), arrays, teachers=both)[0] == equal
    only = run(ListNetLoss(teachers=("a", "b"), teacher_weights=(0.0, 1.0)), arrays, teachers=both)[0]
    assert only == pytest.approx(run(ListNetLoss(teachers=("b",)), arrays, teachers=both)[0])


def test_it_reports_how_well_the_lists_correlate() -> None:
    arrays = draw(VIEWS, 6)
    reports = run(ListMLELoss(), arrays, teachers={"a": arrays})[2].reports
    assert reports["correlation"].item() == pytest.approx(1)
