from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from opencse.losses import Context, ListMLELoss, ListNetLoss, Objective
from opencse.losses.teacher_weights import PolicyWeights, generalised_advantages
from tests.losses.build_contexts import toy_build_context
from tests.losses.checks import draw, run

VIEWS = ("anchor", "twin")
TEACHERS = {"a": draw(VIEWS, 6, 3, seed=7), "b": draw(VIEWS, 6, 5, seed=8)}


def step(term, module, arrays, number: int = 0):
    tensors = {v: torch.tensor(a, requires_grad=True) for v, a in arrays.items()}
    known = {n: {v: torch.tensor(a, dtype=torch.float32) for v, a in t.items()} for n, t in TEACHERS.items()}
    output = term(tensors, context=Context(step=number, teachers=known, modules={term.name: module}))
    return output, tensors


@pytest.mark.parametrize("kind", [ListMLELoss, ListNetLoss])
def test_the_students_loss_is_that_of_the_chosen_weights(kind) -> None:
    """Value and gradient; what the weights learn from is not part of it."""
    term = kind(teachers=("a", "b"), weighting="rlrd")
    module = term.module(toy_build_context(nn.Linear(1, 1)))
    arrays = draw(VIEWS, 6)
    output, tensors = step(term, module, arrays)
    output.value.backward()
    weights = tuple(output.reports[f"weight_{t}"].item() for t in "ab")
    assert sum(weights) == pytest.approx(1)
    fixed = kind(teachers=("a", "b"), teacher_weights=weights)
    single = {n: {v: a.astype(np.float32) for v, a in t.items()} for n, t in TEACHERS.items()}
    expected, gradients, _ = run(fixed, arrays, teachers=single)
    assert output.value.item() == pytest.approx(expected, rel=1e-6)
    for view in VIEWS:
        np.testing.assert_allclose(tensors[view].grad.numpy(), gradients[view], rtol=1e-4, atol=1e-6)
    assert all(p.grad is not None for p in module.parameters())


def test_the_policy_begins_as_one_half() -> None:
    """0.500 ± 0.010, which is what the public code of RLRD gives at first."""
    module = PolicyWeights(2)
    drawn = torch.stack([module.choose(torch.tensor([[1.2, 0.3], [0.8, 0.5]])) for _ in range(400)])
    assert drawn[:, 0].mean() == pytest.approx(0.5, abs=0.002)
    assert drawn[:, 0].std() == pytest.approx(0.01, abs=0.002)


def gae_literally(rewards, values, discount, trace) -> list[float]:
    n = len(rewards)
    return [
        sum(
            (discount * trace) ** k * (rewards[t + k] + discount * values[t + k + 1] - values[t + k])
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
    module = PolicyWeights(2, horizon=32, updates=8, concentration=20, learning_rate=0.02)
    optimizer = torch.optim.Adam(module.parameters(), lr=module.learning_rate)
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
    module = PolicyWeights(2, horizon=5, updates=2)
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
        module = PolicyWeights(2, seed=5, horizon=4, updates=2)
        return module, torch.optim.SGD(module.parameters(), lr=0.1)

    whole = go(*fresh(), 0, 11)
    first, optimizer = fresh()
    begun = go(first, optimizer, 0, 6)
    second, optimizer = fresh()
    second.load_state_dict(first.state_dict())
    torch.manual_seed(77)
    assert torch.equal(torch.cat([begun, go(second, optimizer, 6, 11)]), whole)


def test_another_term_serves_its_weights_to_a_second_list() -> None:
    """RLRD's policy weighs the teachers once, for the list of twins and for that of the negatives."""
    arrays = draw(("anchor", "twin", "negative"), rows=4)
    teachers = {t: draw(tuple(arrays), rows=4, seed=seed) for t, seed in (("a", 5), ("b", 6))}
    second = ListMLELoss(name="second", candidates="negative", teachers=("a", "b"), weights_from="first")
    weights = torch.tensor([0.9, 0.1], dtype=torch.float64)
    loss, _, output = run(second, arrays, teachers=teachers, teacher_weights=weights)
    fixed = ListMLELoss(name="second", candidates="negative", teachers=("a", "b"), teacher_weights=(9.0, 1.0))
    expected, _, _ = run(fixed, arrays, teachers=teachers)
    assert loss == pytest.approx(expected)
    assert loss != pytest.approx(run(replace(fixed, teacher_weights=()), arrays, teachers=teachers)[0])
    torch.testing.assert_close(output.teacher_weights, weights)
    first = ListMLELoss(name="first", teachers=("a", "b"), teacher_weights=(9.0, 1.0))
    vectors, present = ({v: make(a) for v, a in arrays.items()} for make in (torch.tensor, everywhere))
    known = {name: {v: torch.tensor(a) for v, a in each.items()} for name, each in teachers.items()}
    _, values, _ = Objective([first, second])(vectors, present, Context(teachers=known))
    assert values["second"].item() == pytest.approx(expected)


def everywhere(rows: np.ndarray) -> torch.Tensor:
    return torch.ones(len(rows), dtype=torch.bool)


def test_nothing_present_still_gives_every_parameter_a_gradient() -> None:
    term = ListMLELoss(teachers=("a", "b"), weighting="rlrd")
    module = term.module(toy_build_context(nn.Linear(1, 1)))
    arrays = {v: torch.zeros(6, 4, requires_grad=True) for v in VIEWS}
    context = Context(modules={term.name: module})
    loss = term.compute(arrays, {v: torch.zeros(6, dtype=torch.bool) for v in VIEWS}, context).value
    loss.backward()
    assert loss.item() == 0
    assert all(p.grad is not None for p in module.parameters())
