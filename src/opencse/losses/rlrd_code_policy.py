"""RLRD's policy as in the public code, with its slips, for the `faithful` variants.

`rlrd_policy.py` has the sound form. Lines refer to `models/rlrd/rankcse` of SAN's repository.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor
from torch.distributions import Beta

from opencse.foundation.errors import OpencseError
from opencse.losses.base import Context, LossModule

_HIDDEN = 128
# Sizes of the critic's two further layers.
_CRITIC_HIDDEN = (256, 128)
_CLIP = 0.2
_DISCOUNT = 0.99
_UPDATES = 3
_POLICY_RATE = 1e-4
_CRITIC_RATE = 3e-4
# Adam's β1, β2 and ε.
_BETAS = (0.9, 0.999)
_EPSILON = 1e-8

# Purposes of random numbers. Not 0, because NumPy pads short seeds with zeros.
_SAMPLES = 1
_START = 2

Shapes = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class PolicyState:
    """What policy and critic read: one step, or a memory of several.

    Attributes:
        vectors: Vectors of both views, (..., 2, rows, width).
        lists: Lists of both teachers, their own first, (..., 2, rows, rows).
        losses: The student's list loss against each teacher, (..., 2).
    """

    vectors: Tensor
    lists: Tensor
    losses: Tensor

    def of_teacher(self, number: int) -> PolicyState:
        """Return the state of teacher 0 or 1, whose own lists come first."""
        if number == 0:
            return self
        return PolicyState(self.vectors, self.lists.flip(-3), self.losses)


class CodePolicyWeights(LossModule):
    r"""Weights of two teachers as RLRD's public code samples and learns them.

    Each teacher has a policy. It maps the vectors of both views, the lists of both teachers and
    the two list losses to a Beta distribution, from which an action :math:`a_k` is sampled; the
    weights are :math:`a_k / (a_1 + a_2)`. The reward is minus half of the complete loss. After each
    horizon PPO improves policies and critic, with these slips:

    - All weights start uniform in ±0.5, so that the mean and width of the Beta distributions depend
      on the seed (Agent_4.py:23-29).
    - The memory pairs the state of the previous step with the action, distribution, reward and
      value of this step. The first step is not remembered (trainers_rl_5.py:823-838).
    - The advantage multiplies by the value where the temporal difference subtracts it, and does not
      discount (Agent_4.py:144-150).
    - Adam of the policies begins again at each update (Agent_4.py:124).
    - A smaller batch, the last of an epoch, uses the previous weights again
      (trainers_rl_5.py:1210-1219).

    Left out because no number depends on them: the second critic, which is never asked (line 815),
    and the student's graph in the reward. The division by zero after step 7,813 of an epoch (line
    819) is left out too. Computed in full precision; the public code acts in fp16.

    Policies and critic are buffers: they train themselves, and the run's optimizer, its schedule and
    its clipping of gradients leave them alone, as in the public code. Samples depend on the seed and
    the number of calls only.

    Args:
        width: Size of the embeddings.
        rows: Number of rows of a complete batch.
        seed: Seed of the initial weights and of the samples.
        horizon: Number of steps between updates.
    """

    def __init__(self, width: int, rows: int, seed: int = 0, *, horizon: int = 125) -> None:
        super().__init__()
        self._rows = rows
        self._seed = seed
        self._horizon = horizon
        self._policy_shapes = _policy_shapes(width, rows)
        self._critic_shapes = _critic_shapes(width, rows)
        rng = np.random.default_rng([seed, 0, _START])
        policy = _initial_policy(rng, self._policy_shapes)
        critic = _initial_critic(rng, self._critic_shapes)
        # Both policies start alike (trainers_rl_5.py:512-515).
        self.register_buffer("policies", torch.stack([policy, policy]))
        # Weights and Adam's two moments.
        nothing = torch.zeros_like(critic)
        self.register_buffer("critic", torch.stack([critic, nothing, nothing]))
        self.register_buffer("vectors", torch.zeros(horizon, 2, rows, width))
        self.register_buffer("lists", torch.zeros(horizon, 2, rows, rows))
        self.register_buffer("losses", torch.zeros(horizon, 2))
        # Two actions, two distributions of two numbers, two values, and the reward.
        self.register_buffer("steps", torch.zeros(horizon, 9))
        self.register_buffer("last_vectors", torch.zeros(2, rows, width))
        self.register_buffer("last_lists", torch.zeros(2, rows, rows))
        self.register_buffer("last_losses", torch.zeros(2))
        # The last actions, distributions and values, which a smaller batch uses again.
        self.register_buffer("chosen", torch.zeros(8))
        # Calls, remembered steps, steps since the last update, updates of the critic.
        self.register_buffer("counts", torch.zeros(4, dtype=torch.long))
        self._waiting = False
        self._tried = False
        self._state: PolicyState | None = None

    def zero(self) -> Tensor:
        """Return 0; no parameter waits for a gradient."""
        return self.get_buffer("policies").new_zeros(())

    @property
    def rows(self) -> int:
        """Number of rows of a complete batch."""
        return self._rows

    def distributions(self, state: PolicyState) -> Tensor:
        """Return the two numbers of each teacher's Beta distribution, (..., 2, 2)."""
        numbers = []
        for teacher, policy in enumerate(self.get_buffer("policies")):
            numbers.append(_beta_numbers(policy, self._policy_shapes, state.of_teacher(teacher)))
        return torch.stack(numbers, dim=-2)

    @torch.no_grad()
    def choose(self, state: PolicyState) -> Tensor:
        """Return the weights (2,) of the teachers in a complete batch."""
        counts = self.get_buffer("counts")
        policies = self.get_buffer("policies")
        state = PolicyState(
            state.vectors.to(policies), state.lists.to(policies), state.losses.to(policies)
        )
        numbers = self.distributions(state)
        rng = np.random.default_rng([self._seed, int(counts[0]), _SAMPLES])
        first, second = numbers.double().cpu().numpy().T
        actions = torch.from_numpy(rng.beta(first, second)).to(policies)
        # Both values come from the first critic (trainers_rl_5.py:815).
        weights = self.get_buffer("critic")[0]
        values = []
        for teacher in range(2):
            values.append(_critic_value(weights, self._critic_shapes, state.of_teacher(teacher)))
        self.get_buffer("chosen").copy_(
            torch.cat([actions, numbers.flatten(), torch.stack(values)])
        )
        counts[0] += 1
        self._state = state
        self._waiting = True
        return actions / actions.sum()

    @torch.no_grad()
    def choose_again(self, rows: int) -> Tensor:
        """Return the previous weights (2,), for a batch that is not complete.

        Equal weights are returned once if there are none yet, for the trial before the first step.

        Raises:
            OpencseError: There are none.
        """
        if self.get_buffer("counts")[0] == 0:
            if not self._tried:
                # Training tries each loss on two rows before its first step.
                self._tried = True
                return self.get_buffer("chosen").new_full((2,), 0.5)
            raise OpencseError(
                f"RLRD's policy (policy = 'code') reads batches of {self._rows} complete rows, but "
                f"the first has {rows}",
                "Set policy_rows of the loss to training.batch_size, or policy to 'sound'.",
            )
        self._state = None
        self._waiting = True
        actions = self.get_buffer("chosen")[:2]
        return actions / actions.sum()

    @torch.no_grad()
    def observe(self, total: Tensor, context: Context) -> None:
        """Remember the step with its reward; after a horizon, learn from the memory."""
        if not self._waiting:
            return
        self._waiting = False
        counts = self.get_buffer("counts")
        # Every process must have the same reward, or their policies would drift apart.
        objective = total.detach()
        loss = context.processes.mean(objective, torch.ones_like(objective))
        if counts[2] > 0 or counts[0] > 1:
            self._remember(-loss / 2)
        if self._state is not None:
            self.get_buffer("last_vectors").copy_(self._state.vectors)
            self.get_buffer("last_lists").copy_(self._state.lists)
            self.get_buffer("last_losses").copy_(self._state.losses)
        counts[2] += 1
        if counts[2] >= self._horizon:
            self._improve()
            counts[1:3] = 0

    def _remember(self, reward: Tensor) -> None:
        """Store the state of the previous step with what this step did."""
        counts = self.get_buffer("counts")
        slot = int(counts[1])
        for name in ("vectors", "lists", "losses"):
            self.get_buffer(name)[slot] = self.get_buffer(f"last_{name}")
        chosen = self.get_buffer("chosen")
        self.get_buffer("steps")[slot] = torch.cat([chosen, reward.to(chosen)[None]])
        counts[1] += 1

    def memory(self) -> tuple[PolicyState, Tensor, Tensor, Tensor, Tensor]:
        """Return what is remembered, of T steps.

        Returns:
            States, actions (T, 2), distributions (T, 2, 2), values (T, 2) and rewards (T,).
        """
        remembered = int(self.get_buffer("counts")[1])
        state = PolicyState(
            self.get_buffer("vectors")[:remembered],
            self.get_buffer("lists")[:remembered],
            self.get_buffer("losses")[:remembered],
        )
        actions, numbers, values, rewards = (
            self.get_buffer("steps")[:remembered].clone().split([2, 4, 2, 1], dim=1)
        )
        return state, actions, numbers.unflatten(1, (2, 2)), values, rewards.squeeze(1)

    def _improve(self) -> None:
        """Improve both policies and the critic by PPO."""
        state, actions, numbers, values, rewards = self.memory()
        for teacher in range(2):
            seen = state.of_teacher(teacher)
            old = Beta(numbers[:, teacher, 0], numbers[:, teacher, 1])
            advantages = code_advantages(rewards, values[:, teacher])
            self._improve_policy(teacher, seen, actions[:, teacher], old, advantages)
            if teacher == 0:
                self._improve_critic(seen, advantages + values[:, 0])

    def _improve_policy(
        self, teacher: int, state: PolicyState, actions: Tensor, old: Beta, advantages: Tensor
    ) -> None:
        """Take PPO's steps of one policy."""
        policy = self.get_buffer("policies")[teacher]
        old_log_probs = old.log_prob(actions)
        moments = torch.zeros(2, len(policy)).to(policy)
        for update in range(_UPDATES):
            with torch.enable_grad():
                weights = policy.clone().requires_grad_()
                numbers = _beta_numbers(weights, self._policy_shapes, state)
                log_probs = Beta(numbers[:, 0], numbers[:, 1]).log_prob(actions)
                ratio = (log_probs - old_log_probs).exp()
                clipped = ratio.clamp(1 - _CLIP, 1 + _CLIP)
                loss = -torch.minimum(ratio * advantages, clipped * advantages).mean()
                (gradient,) = torch.autograd.grad(loss, weights)
            _adam_step(policy, moments, gradient, update + 1, _POLICY_RATE)

    def _improve_critic(self, state: PolicyState, returns: Tensor) -> None:
        """Take the critic's steps towards the returns."""
        critic = self.get_buffer("critic")[0]
        moments = self.get_buffer("critic")[1:]
        counts = self.get_buffer("counts")
        for _ in range(_UPDATES):
            with torch.enable_grad():
                weights = critic.clone().requires_grad_()
                found = _critic_value(weights, self._critic_shapes, state)
                loss = (returns - found).square().mean() / 2
                (gradient,) = torch.autograd.grad(loss, weights)
            counts[3] += 1
            _adam_step(critic, moments, gradient, int(counts[3]), _CRITIC_RATE)


def code_advantages(rewards: Tensor, values: Tensor) -> Tensor:
    r"""Return the advantages (T,) of the public code, whose last is 0.

    .. math:: A_t = \sum_{k=t}^{T-2} 0.99 \, (r_k - \gamma V_{k+1} V_k)

    Args:
        rewards: Rewards (T,).
        values: Values (T,).
    """
    advantages = torch.zeros_like(rewards)
    errors = rewards[:-1] - _DISCOUNT * values[1:] * values[:-1]
    advantages[:-1] = (_DISCOUNT * errors).flip(0).cumsum(0).flip(0)
    return advantages


def _policy_shapes(width: int, rows: int) -> Shapes:
    """Return the shapes of a policy's weights by name."""
    return {
        "vectors": (width, _HIDDEN),
        "lists": (rows, _HIDDEN),
        "losses": (2, _HIDDEN),
        "bias": (_HIDDEN,),
        "alpha": (_HIDDEN,),
        "beta": (_HIDDEN,),
    }


def _critic_shapes(width: int, rows: int) -> Shapes:
    """Return the shapes of the critic's weights by name."""
    first, second = _CRITIC_HIDDEN
    return {
        "vectors": (width, _HIDDEN),
        "lists": (rows, _HIDDEN),
        "losses": (2, _HIDDEN),
        "bias": (_HIDDEN,),
        "weight_1": (first, _HIDDEN),
        "bias_1": (first,),
        "gain_1": (first,),
        "shift_1": (first,),
        "weight_2": (second, first),
        "bias_2": (second,),
        "gain_2": (second,),
        "shift_2": (second,),
        "weight_3": (1, second),
        "bias_3": (1,),
    }


def _initial_policy(rng: np.random.Generator, shapes: Shapes) -> Tensor:
    """Return initial weights of a policy, uniform in ±0.5, as one vector."""
    size = sum(math.prod(shape) for shape in shapes.values())
    return torch.from_numpy(rng.uniform(-0.5, 0.5, size)).float()


def _initial_critic(rng: np.random.Generator, shapes: Shapes) -> Tensor:
    """Return initial weights of the critic as one vector.

    The first layer is uniform in ±0.5. The others have PyTorch's defaults: uniform in ±1/√(inputs),
    and gains of 1.
    """
    parts = []
    for name, shape in shapes.items():
        if name.startswith("gain_"):
            part = np.ones(shape)
        elif name.startswith("shift_"):
            part = np.zeros(shape)
        elif name.startswith(("weight_", "bias_")):
            layer = name.split("_")[1]
            bound = 1 / math.sqrt(shapes[f"weight_{layer}"][1])
            part = rng.uniform(-bound, bound, shape)
        else:
            part = rng.uniform(-0.5, 0.5, shape)
        parts.append(part.ravel())
    return torch.from_numpy(np.concatenate(parts)).float()


def _parts(weights: Tensor, shapes: Shapes) -> dict[str, Tensor]:
    """Return a vector of weights as tensors by name."""
    sizes = [math.prod(shape) for shape in shapes.values()]
    pieces = weights.split(sizes)
    return {
        name: piece.view(shape) for (name, shape), piece in zip(shapes.items(), pieces, strict=True)
    }


def _first_layer(parts: Mapping[str, Tensor], state: PolicyState) -> Tensor:
    """Return the first layer of policy or critic before its activation, (..., 2, rows, 128)."""
    from_losses = (state.losses @ parts["losses"])[..., None, None, :]
    from_batch = state.vectors @ parts["vectors"] + state.lists @ parts["lists"]
    return from_batch + from_losses + parts["bias"]


def _beta_numbers(weights: Tensor, shapes: Shapes, state: PolicyState) -> Tensor:
    """Return the two numbers of the Beta distribution, (..., 2), each at least 50."""
    parts = _parts(weights, shapes)
    hidden = _first_layer(parts, state).relu()
    heads = hidden @ torch.stack([parts["alpha"], parts["beta"]], dim=1)
    return F.softplus(heads).mean(dim=(-3, -2)) + 50


def _critic_value(weights: Tensor, shapes: Shapes, state: PolicyState) -> Tensor:
    """Return the critic's estimate of the return, (...)."""
    parts = _parts(weights, shapes)
    hidden = _first_layer(parts, state).sigmoid().clamp(1e-5, 1 - 1e-5)
    for layer in ("1", "2"):
        weight = parts[f"weight_{layer}"]
        bias = parts[f"bias_{layer}"]
        gain = parts[f"gain_{layer}"]
        shift = parts[f"shift_{layer}"]
        hidden = F.linear(hidden, weight, bias)
        hidden = F.layer_norm(hidden, hidden.shape[-1:], gain, shift).relu()
    return F.linear(hidden, parts["weight_3"], parts["bias_3"]).mean(dim=(-3, -2, -1))


def _adam_step(
    weights: Tensor, moments: Tensor, gradient: Tensor, number: int, learning_rate: float
) -> None:
    """Take step `number` (from 1) of Adam, in place.

    Args:
        weights: Weights (P,).
        moments: Both moments (2, P).
        gradient: Gradient (P,).
        number: Number of the step.
        learning_rate: Learning rate.
    """
    mean, square = moments
    mean.lerp_(gradient, 1 - _BETAS[0])
    square.lerp_(gradient.square(), 1 - _BETAS[1])
    scale = (square / (1 - _BETAS[1] ** number)).sqrt() + _EPSILON
    weights.sub_(learning_rate * mean / (1 - _BETAS[0] ** number) / scale)
