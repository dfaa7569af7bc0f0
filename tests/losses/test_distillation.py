"""ListNet, ListMLE, the consistency of two lists, and weights of teachers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from opencse.losses import Context, ListMLELoss, ListNetLoss, Objective, RankingConsistencyLoss
from opencse.losses.rlrd_policy import PolicyWeights, generalised_advantages
from tests.losses.checks import draw, run, toy_build_context
from tests.reference.ranking import permutation_probability

VIEWS = ("anchor", "twin")
TEACHERS = {"a": draw(VIEWS, 6, 3, seed=7), "b": draw(VIEWS, 6, 5, seed=8)}


def with_scores(loss, student: np.ndarray, teacher: np.ndarray) -> float:
    """The loss on given matrices of cosines, which the identity as candidates reproduces."""
    n = len(student)
    arrays = {"anchor": student, "twin": np.eye(n)}
    return run(loss, arrays, teachers={"a": {"anchor": teacher, "twin": np.eye(n)}})[0]


def unit_rows(seed: int, n: int) -> np.ndarray:
    rows = np.random.default_rng(seed).normal(size=(n, n))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@given(st.integers(0, 10_000), st.integers(2, 5))
@settings(deadline=None, max_examples=25)
def test_list_mle_is_the_probability_of_the_permutation(seed: int, n: int) -> None:
    student, teacher = unit_rows(seed, n), unit_rows(seed + 1, n)
    expected = [
        -math.log(permutation_probability(s / 0.3, np.argsort(-t)))
        for s, t in zip(student, teacher)
    ]
    assert with_scores(ListMLELoss(temperature=0.3), student, teacher) == pytest.approx(
        np.mean(expected), abs=1e-9
    )


@pytest.mark.parametrize("loss", [ListMLELoss(), ListNetLoss(), ListMLELoss(epsilon=1e-7)])
def test_finite_for_extreme_lists_of_512_in_fp32(loss) -> None:
    n = 512
    signs = np.where(np.random.default_rng(0).random((n, 2)) < 0.5, -1.0, 1.0) + 1e-3
    arrays = {"anchor": signs, "twin": signs[::-1].copy()}
    known = {"a": {"anchor": -signs, "twin": signs}}
    value, gradients, _ = run(loss, arrays, teachers=known, dtype=torch.float32)
    assert np.isfinite(value)
    assert all(np.isfinite(g).all() for g in gradients.values())


def test_the_coded_list_mle_pushes_up_what_is_far_below_the_maximum() -> None:
    """Its epsilon swamps the sum: the order among the lowest candidates makes no difference any more."""
    student = np.array([[1.0, -0.9, -0.95]])
    orders = [np.array([[3.0, 2.0, 1.0]]), np.array([[3.0, 1.0, 2.0]])]

    def value(loss, teacher):
        arrays = {"anchor": student, "twin": np.eye(3)}
        has = {"anchor": np.array([True, False, False])}
        arrays["anchor"] = np.vstack([student, np.zeros((2, 3))])
        known = {"a": {"anchor": np.vstack([teacher, np.zeros((2, 3))]), "twin": np.eye(3)}}
        return run(loss, arrays, has, known)[0]

    coded = [value(ListMLELoss(epsilon=1e-7), o) for o in orders]
    exact = [value(ListMLELoss(), o) for o in orders]
    assert abs(coded[0] - coded[1]) < 1e-3 < abs(exact[0] - exact[1])


def test_teachers_weights_are_scaled_and_equal_by_default_and_correlations_reported() -> None:
    arrays = draw(VIEWS, 6)
    both = {"a": TEACHERS["a"], "b": TEACHERS["b"]}
    equal = run(ListNetLoss(teachers=("a", "b")), arrays, teachers=both)[0]
    assert (
        run(ListNetLoss(teachers=("a", "b"), teacher_weights=(3.0, 3.0)), arrays, teachers=both)[0]
        == equal
    )
    only = run(ListNetLoss(teachers=("a", "b"), teacher_weights=(0.0, 1.0)), arrays, teachers=both)[
        0
    ]
    assert only == pytest.approx(run(ListNetLoss(teachers=("b",)), arrays, teachers=both)[0])
    reports = run(ListMLELoss(), arrays, teachers={"a": arrays})[2].reports
    assert reports["correlation"].item() == pytest.approx(1)


@given(st.integers(0, 10_000), st.floats(0.0, 3.0), st.floats(0.01, 1.0))
@settings(deadline=None, max_examples=50)
def test_between_zero_and_log_two_and_symmetric(
    seed: int, spread: float, temperature: float
) -> None:
    arrays = draw(VIEWS, 6, seed=seed, spread=spread)
    value = run(RankingConsistencyLoss(temperature=temperature), arrays)[0]
    assert -1e-12 <= value <= math.log(2) + 1e-12
    swapped = {"anchor": arrays["twin"], "twin": arrays["anchor"]}
    assert run(RankingConsistencyLoss(temperature=temperature), swapped)[0] == pytest.approx(
        value, abs=1e-12
    )


def test_zero_for_equal_lists_where_the_coded_form_is_not() -> None:
    arrays = draw(("anchor",), 6)
    same = {"anchor": arrays["anchor"], "twin": arrays["anchor"]}
    value, gradients, _ = run(RankingConsistencyLoss(), same)
    assert value == pytest.approx(0, abs=1e-12)
    assert np.abs(gradients["anchor"]).max() < 1e-9
    value, gradients, _ = run(RankingConsistencyLoss(form="entropy", temperature=0.3), same)
    assert value < -0.01
    assert np.abs(gradients["anchor"]).max() > 1e-3


def step(loss, module, arrays, number: int = 0):
    tensors = {v: torch.tensor(a, requires_grad=True) for v, a in arrays.items()}
    known = {
        n: {v: torch.tensor(a, dtype=torch.float32) for v, a in t.items()}
        for n, t in TEACHERS.items()
    }
    output = loss(
        tensors, context=Context(step=number, teachers=known, modules={loss.name: module})
    )
    return output, tensors


@pytest.mark.parametrize("kind", [ListMLELoss, ListNetLoss])
def test_the_students_loss_is_that_of_the_chosen_weights(kind) -> None:
    """Value and gradient; what the weights learn from is not part of it."""
    loss = kind(teachers=("a", "b"), weighting="rlrd")
    module = loss.module(toy_build_context(nn.Linear(1, 1)))
    arrays = draw(VIEWS, 6)
    output, tensors = step(loss, module, arrays)
    output.value.backward()
    weights = tuple(output.reports[f"weight_{t}"].item() for t in "ab")
    assert sum(weights) == pytest.approx(1)
    fixed = kind(teachers=("a", "b"), teacher_weights=weights)
    single = {n: {v: a.astype(np.float32) for v, a in t.items()} for n, t in TEACHERS.items()}
    expected, gradients, _ = run(fixed, arrays, teachers=single)
    assert output.value.item() == pytest.approx(expected, rel=1e-6)
    for view in VIEWS:
        np.testing.assert_allclose(
            tensors[view].grad.numpy(), gradients[view], rtol=1e-4, atol=1e-6
        )
    assert all(p.grad is not None for p in module.parameters())


def test_the_policy_begins_as_one_half() -> None:
    """0.500 ± 0.010; the policy of the public code starts wider (`rlrd_code_policy`)."""
    module = PolicyWeights(2)
    drawn = torch.stack([module.choose(torch.tensor([[1.2, 0.3], [0.8, 0.5]])) for _ in range(400)])
    assert drawn[:, 0].mean() == pytest.approx(0.5, abs=0.002)
    assert drawn[:, 0].std() == pytest.approx(0.01, abs=0.002)


def gae_literally(rewards, values, discount, trace) -> list[float]:
    n = len(rewards)
    return [
        sum(
            (discount * trace) ** k
            * (rewards[t + k] + discount * values[t + k + 1] - values[t + k])
            for k in range(n - t)
        )
        for t in range(n)
    ]


def test_advantages_equal_the_transcription() -> None:
    random = np.random.default_rng(0)
    rewards, values = random.normal(size=7), random.normal(size=8)
    found = generalised_advantages(torch.tensor(rewards), torch.tensor(values), 0.9, 0.8)
    np.testing.assert_allclose(found.numpy(), gae_literally(rewards, values, 0.9, 0.8), rtol=1e-12)


def test_the_policy_comes_to_favour_the_teacher_that_pays() -> None:
    """A bandit: the loss is the weight of the second teacher."""
    torch.manual_seed(0)
    module = PolicyWeights(2, horizon=32)
    module.updates, module.concentration = 8, 20
    optimizer = torch.optim.Adam(module.parameters(), lr=0.02)
    features = torch.tensor([[0.5, 0.9], [1.5, 0.1]])
    weights = []
    for _ in range(1200):
        chosen = module.choose(features)
        weights.append(chosen[0].item())
        optimizer.zero_grad()
        module.learn(400 * chosen[1]).backward()
        optimizer.step()
    assert np.mean(weights[:32]) == pytest.approx(0.5, abs=0.06)
    assert np.mean(weights[-32:]) > 0.65


def test_updates_follow_a_horizon_and_every_step_has_gradients() -> None:
    module = PolicyWeights(2, horizon=5)
    module.updates = 2
    moved = []
    for i in range(14):
        module.zero_grad()
        module.choose(torch.tensor([[1.0, 0.1 * i], [1.0, 0.5]]))
        module.learn(torch.tensor(float(i % 3))).backward()
        assert all(p.grad is not None for p in module.parameters())
        moved.append(any(p.grad.any() for p in module.parameters()))
    assert moved == [i in (5, 6, 10, 11) for i in range(14)]


def test_a_saved_policy_goes_on_as_if_nothing_had_happened() -> None:
    def go(module, optimizer, start, end):
        out = []
        for i in range(start, end):
            chosen = module.choose(torch.tensor([[1.0, 0.1 * i], [1.1, 0.5]]))
            out.append(chosen)
            optimizer.zero_grad()
            module.learn(chosen[0] * (i % 4)).backward()
            optimizer.step()
        return torch.stack(out)

    def fresh():
        torch.manual_seed(3)
        module = PolicyWeights(2, seed=5, horizon=4)
        module.updates = 2
        return module, torch.optim.SGD(module.parameters(), lr=0.1)

    whole = go(*fresh(), 0, 11)
    first, optimizer = fresh()
    begun = go(first, optimizer, 0, 6)
    second, optimizer = fresh()
    second.load_state_dict(first.state_dict())
    torch.manual_seed(77)
    assert torch.equal(torch.cat([begun, go(second, optimizer, 6, 11)]), whole)


def test_another_loss_serves_its_weights_to_a_second_list() -> None:
    """RLRD's policy weighs the teachers once, for the list of twins and for that of the negatives."""
    arrays = draw(("anchor", "twin", "negative"), rows=4)
    teachers = {t: draw(tuple(arrays), rows=4, seed=seed) for t, seed in (("a", 5), ("b", 6))}
    second = ListMLELoss(
        name="second", candidates="negative", teachers=("a", "b"), weights_from="first"
    )
    weights = torch.tensor([0.9, 0.1], dtype=torch.float64)
    value, _, output = run(second, arrays, teachers=teachers, teacher_weights=weights)
    fixed = ListMLELoss(
        name="second", candidates="negative", teachers=("a", "b"), teacher_weights=(9.0, 1.0)
    )
    expected, _, _ = run(fixed, arrays, teachers=teachers)
    assert value == pytest.approx(expected)
    assert value != pytest.approx(
        run(replace(fixed, teacher_weights=()), arrays, teachers=teachers)[0]
    )
    torch.testing.assert_close(output.teacher_weights, weights)
    first = ListMLELoss(name="first", teachers=("a", "b"), teacher_weights=(9.0, 1.0))
    vectors, present = (
        {v: make(a) for v, a in arrays.items()} for make in (torch.tensor, everywhere)
    )
    known = {name: {v: torch.tensor(a) for v, a in each.items()} for name, each in teachers.items()}
    _, values, _ = Objective([first, second])(vectors, present, Context(teachers=known))
    assert values["second"].item() == pytest.approx(expected)


def everywhere(rows: np.ndarray) -> torch.Tensor:
    return torch.ones(len(rows), dtype=torch.bool)


def test_nothing_present_still_gives_every_parameter_a_gradient() -> None:
    loss = ListMLELoss(teachers=("a", "b"), weighting="rlrd")
    module = loss.module(toy_build_context(nn.Linear(1, 1)))
    arrays = {v: torch.zeros(6, 4, requires_grad=True) for v in VIEWS}
    context = Context(modules={loss.name: module})
    value = loss.compute(
        arrays, {v: torch.zeros(6, dtype=torch.bool) for v in VIEWS}, context
    ).value
    value.backward()
    assert value.item() == 0
    assert all(p.grad is not None for p in module.parameters())
