"""RLRD's policy as in the public code, against a literal transcription of its steps."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Beta

from opencse.foundation.errors import OpencseError
from opencse.losses import ListMLELoss
from opencse.losses.base import Context, Objective
from opencse.losses.rlrd_code_policy import CodePolicyWeights, PolicyState, code_advantages
from opencse.recipes import load_recipe
from tests.losses.checks import draw, toy_build_context

ROWS, WIDTH, HORIZON = 4, 5, 3


def first_layer() -> nn.ParameterDict:
    """One by one, because a ParameterDict sorts what it is made of."""
    weights = nn.ParameterDict()
    for name, size in (("W1", WIDTH), ("W2", ROWS), ("W3", 2), ("b", 1)):
        weights[name] = nn.Parameter(torch.empty(size, 128))
    return weights


class LiteralPolicy(nn.Module):
    """A policy with one parameter for each array of the public code."""

    def __init__(self) -> None:
        super().__init__()
        self.all = first_layer()
        for head in ("alpha", "beta"):
            self.all[head] = nn.Parameter(torch.empty(128, 1))

    def forward(self, vectors, lists, losses):
        w = self.all
        summed = vectors @ w["W1"] + lists @ w["W2"] + losses @ w["W3"] + w["b"]
        flat = torch.relu(summed).reshape(-1, 128)
        return [F.softplus(flat @ w[head]).mean() + 50 for head in ("alpha", "beta")]


class LiteralCritic(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.all = first_layer()
        self.model = nn.Sequential(
            *(nn.Linear(128, 256), nn.LayerNorm(256), nn.ReLU()),
            *(nn.Linear(256, 128), nn.LayerNorm(128), nn.ReLU(), nn.Linear(128, 1)),
        )

    def forward(self, vectors, lists, losses):
        w = self.all
        summed = vectors @ w["W1"] + lists @ w["W2"] + losses @ w["W3"] + w["b"]
        return self.model(summed.sigmoid().clamp(1e-5, 1 - 1e-5).reshape(-1, 128)).mean()


def filled(network: nn.Module, flat: torch.Tensor) -> nn.Module:
    """The network with the weights of a vector, in the order in which it has them."""
    nn.utils.vector_to_parameters(flat.clone(), network.parameters())
    return network


def update(memory, policy, critic, critic_optimizer) -> None:
    """What happens after a horizon, for one teacher; `memory` has a tuple for each step."""
    optimizer = torch.optim.Adam(policy.parameters(), lr=1e-4)
    states, actions, numbers, rewards, values = zip(*memory)
    for _ in range(3):
        advantages = torch.zeros(len(memory))
        for t in range(len(memory) - 1):
            for k in range(t, len(memory) - 1):
                advantages[t] += 0.99 * (rewards[k] + 0.99 * values[k + 1] * -values[k])
        now = torch.stack([torch.stack(policy(*state)) for state in states])
        then = torch.tensor(numbers)
        taken = torch.tensor(actions)
        ratio = torch.exp(
            Beta(now[:, 0], now[:, 1]).log_prob(taken)
            - Beta(then[:, 0], then[:, 1]).log_prob(taken)
        )
        gain = torch.min(ratio * advantages, ratio.clamp(0.8, 1.2) * advantages).mean()
        found = torch.stack([critic(*state) for state in states])
        error = ((advantages + torch.tensor(values) - found) ** 2).mean()
        optimizer.zero_grad()
        critic_optimizer.zero_grad()
        (-gain + 0.5 * error).backward()
        optimizer.step()
        critic_optimizer.step()


def some_state(number: int) -> PolicyState:
    random = torch.Generator().manual_seed(number)
    return PolicyState(
        torch.randn(2, ROWS, WIDTH, generator=random),
        torch.randn(2, ROWS, ROWS, generator=random),
        1 + torch.rand(2, generator=random),
    )


def test_weights_start_wide_and_alike_for_both_teachers() -> None:
    module = CodePolicyWeights(WIDTH, ROWS, seed=3)
    first, second = module.get_buffer("policies")
    assert torch.equal(first, second)
    assert first.abs().max() <= 0.5
    assert first.std() == pytest.approx(1 / np.sqrt(12), rel=0.05)
    assert not torch.equal(first, CodePolicyWeights(WIDTH, ROWS, seed=4).get_buffer("policies")[0])
    # The critic's further layers: PyTorch's defaults.
    critic = LiteralCritic()
    filled(critic, module.get_buffer("critic")[0])
    for layer in (0, 3, 6):
        bound = critic.model[layer].in_features ** -0.5
        assert 0.9 * bound < critic.model[layer].weight.abs().max() <= bound
    for layer in (1, 4):
        assert (critic.model[layer].weight == 1).all()
        assert not critic.model[layer].bias.any()


@pytest.fixture
def double():
    """Adam's first steps follow the sign of a gradient, so that rounding would decide some of them."""
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def test_seven_steps_equal_the_transcription(double) -> None:
    """Seven steps with two updates; the sixth batch is smaller."""
    module = CodePolicyWeights(WIDTH, ROWS, seed=1, horizon=HORIZON).double()
    policies = [filled(LiteralPolicy(), flat) for flat in module.get_buffer("policies")]
    critics = [filled(LiteralCritic(), module.get_buffer("critic")[0]) for _ in range(2)]
    optimizers = [torch.optim.Adam(critic.parameters(), lr=3e-4) for critic in critics]
    memories, last, steps = ([], []), None, 0
    for number in range(7):
        if number != 5:
            state = some_state(number)
            weights = module.choose(state)
            both = [
                (state.vectors, state.lists, state.losses[None]),
                (state.vectors, state.lists[[1, 0]], state.losses[None]),
            ]
            numbers = [[v.item() for v in p(*s)] for p, s in zip(policies, both, strict=True)]
            torch.testing.assert_close(module.distributions(state), torch.tensor(numbers))
            actions = module.get_buffer("chosen")[:2].tolist()
            values = [critics[0](*s).item() for s in both]
        else:
            weights = module.choose_again(2)
        assert weights.tolist() == pytest.approx([a / sum(actions) for a in actions])
        loss = torch.tensor(0.5 + number % 3)
        module.observe(loss, Context())
        if last is not None:
            for k in range(2):
                reward = -0.5 * loss.item()
                memories[k].append((last[k], actions[k], numbers[k], reward, values[k]))
        last, steps = both, steps + 1
        if steps == HORIZON:
            for k in range(2):
                update(memories[k], policies[k], critics[k], optimizers[k])
                memories[k].clear()
            steps = 0
        for k in range(2):
            expected = nn.utils.parameters_to_vector(policies[k].parameters())
            torch.testing.assert_close(
                module.get_buffer("policies")[k], expected, rtol=0, atol=1e-9
            )
        expected = nn.utils.parameters_to_vector(critics[0].parameters())
        torch.testing.assert_close(module.get_buffer("critic")[0], expected, rtol=0, atol=1e-9)
    assert len(torch.unique(module.get_buffer("policies"), dim=0)) == 2  # they no longer agree
    assert int(module.get_buffer("counts")[3]) == 6  # the critic learned twice, three steps each


def test_the_memory_pairs_the_previous_state_with_this_action() -> None:
    module = CodePolicyWeights(WIDTH, ROWS, horizon=9)
    taken = []
    for number in range(3):
        module.choose(some_state(number))
        taken.append(module.get_buffer("chosen")[:2].clone())
        module.observe(torch.tensor(float(number)), Context())
    states, actions, _, _, rewards = module.memory()
    assert torch.equal(states.losses, torch.stack([some_state(0).losses, some_state(1).losses]))
    assert torch.equal(actions, torch.stack(taken[1:]))
    assert rewards.tolist() == [-0.5, -1.0]


def test_the_advantage_multiplies_values() -> None:
    found = code_advantages(torch.tensor([1.0, 2.0, 3.0]), torch.tensor([0.5, 2.0, 4.0]))
    second = 0.99 * (2 - 0.99 * 4 * 2)
    assert found.tolist() == pytest.approx([second + 0.99 * (1 - 0.99 * 2 * 0.5), second, 0])


def test_a_saved_policy_continues_as_if_nothing_had_happened() -> None:
    def steps(module: CodePolicyWeights, numbers: range) -> list[list[float]]:
        weights = []
        for number in numbers:
            weights.append(module.choose(some_state(number)).tolist())
            module.observe(torch.tensor(float(number)), Context())
        return weights

    whole = steps(CodePolicyWeights(WIDTH, ROWS, seed=2, horizon=HORIZON), range(8))
    first = CodePolicyWeights(WIDTH, ROWS, seed=2, horizon=HORIZON)
    begun = steps(first, range(5))
    second = CodePolicyWeights(WIDTH, ROWS, seed=2, horizon=HORIZON)
    second.load_state_dict(first.state_dict())
    assert begun + steps(second, range(5, 8)) == whole


VIEWS = ("anchor", "twin")
LOSS = ListMLELoss(teachers=("a", "b"), weighting="rlrd", policy="code", policy_rows=6)


def test_the_loss_uses_its_weights_and_rewards_the_complete_objective() -> None:
    """A smaller batch repeats the weights; the policy has no parameters for the run's optimizer."""
    module = LOSS.module(toy_build_context(nn.Linear(1, 1), width=4))
    assert not list(module.parameters())
    objective = Objective([replace(LOSS, weight=0.1), ListMLELoss(name="other", teachers=("a",))])
    weights = []
    for rows in (6, 6, 4):
        vectors = {v: torch.tensor(x, requires_grad=True) for v, x in draw(VIEWS, rows).items()}
        known = {
            name: {v: torch.tensor(x) for v, x in draw(VIEWS, rows, seed=seed).items()}
            for name, seed in (("a", 5), ("b", 6))
        }
        context = Context(teachers=known, modules={LOSS.name: module})
        total, _, reports = objective(vectors, context=context)
        total.backward()
        weights.append(reports[f"{LOSS.name}/weight_a"].item())
    assert weights[0] != weights[1]
    assert weights[1] == pytest.approx(weights[2])
    *_, rewards = module.memory()
    assert rewards[-1].item() == pytest.approx(-total.item() / 2, rel=1e-6)


def test_a_first_batch_of_another_size_is_an_error() -> None:
    policy = CodePolicyWeights(WIDTH, ROWS)
    # The trial before the first step.
    assert policy.choose_again(2).tolist() == [0.5, 0.5]
    with pytest.raises(OpencseError, match="complete rows"):
        policy.choose_again(3)


@pytest.mark.parametrize("name", ["rlrd", "san-rlrd"])
def test_only_faithful_recipes_have_it(name) -> None:
    for variant, expected in (("faithful", "code"), ("sound", "sound")):
        recipe = load_recipe(name, family="bert-base", variant=variant)
        (distillation,) = [loss for loss in recipe.losses if loss.name == "distillation"]
        assert distillation.policy == expected
