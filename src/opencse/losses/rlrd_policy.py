"""RLRD's policy, which chooses the weights of several teachers during training.

`distillation.py` applies the weights. They depend on the student's separate loss against each
teacher, and send no gradient to the student.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn
from torch.distributions import Dirichlet

from opencse.losses.base import LossModule

# Features of each teacher: relative loss, correlation with the student.
_FEATURES = 2
# Range of the ratio of new to old probability (PPO).
_CLIP = 0.2
# γ, and λ of generalised advantage estimation.
_DISCOUNT = 0.99
_TRACE = 0.95


class PolicyWeights(LossModule):
    r"""Weights sampled by a policy that is rewarded for a low loss (RLRD, in a sound form).

    An actor maps the features of each teacher to the concentration of a Dirichlet distribution,
    from which the weights are sampled; a critic estimates the return. The reward is minus half of
    the list loss, standardised over a horizon and detached. After each horizon PPO (Schulman et
    al., 2017) with generalised advantage estimation (2016) improves both. `CodePolicyWeights` is
    the policy of the public code.

    The samples depend only on the seed and the number of calls, so that they are the same in all
    processes and in a resumed run.

    Args:
        teachers: Number of teachers, K.
        seed: Seed of the samples.
        horizon: Number of steps between updates, at least 2.
    """

    learning_rate = 1e-4
    updates = 3
    """Gradient steps on a horizon's experience, in the following training steps.

    AdamW's momentum outlasts them.
    """
    concentration = 1250.0
    """Concentration of the Dirichlet distribution.

    With two teachers the weights start at 0.500 ± 0.010. Higher values keep them closer to the mean
    of the policy. In the public code (`rlrd_code_policy.py`) the spread depends on the seed.
    """

    def __init__(self, teachers: int, seed: int = 0, *, horizon: int = 125) -> None:
        super().__init__()
        self._seed = seed
        self._horizon = horizon
        self.actor = _small_network(_FEATURES)
        self.critic = _small_network(teachers * _FEATURES)
        # Widths of states, actions, log-probabilities and rewards.
        self._widths = [teachers * _FEATURES, teachers, 1, 1]
        self.register_buffer("experience", torch.zeros(horizon, sum(self._widths)))
        # The experience of the last horizon, and its advantages and returns.
        self.register_buffer("last", torch.zeros(horizon, sum(self._widths)))
        self.register_buffer("targets", torch.zeros(2, horizon))
        # Calls, steps of experience, updates due.
        self.register_buffer("counts", torch.zeros(3, dtype=torch.long))
        self._chosen: tuple[Tensor, Tensor, Tensor] | None = None

    def distribution(self, states: Tensor) -> Dirichlet:
        """Return the distribution of the weights at states (..., K, 2)."""
        centred = states - torch.tensor([1.0, 0.0], dtype=states.dtype, device=states.device)
        return Dirichlet(self.concentration * self.actor(centred).squeeze(-1).tanh().exp())

    def value(self, states: Tensor) -> Tensor:
        """Return the estimated return of states (..., K, 2)."""
        return self.critic(states.flatten(-2)).squeeze(-1)

    @torch.no_grad()
    def choose(self, features: Tensor) -> Tensor:
        """Return non-negative weights (K,) that sum to 1.

        Args:
            features: For each teacher, the student's loss against it relative to the mean of these
                losses, and the correlation of their lists, (K, 2).
        """
        counts = self.get_buffer("counts")
        state = features.to(self.get_buffer("experience"))
        if counts[1] == self._horizon:
            self._end_horizon(state)
        distribution = self.distribution(state)
        rng = np.random.default_rng([self._seed, int(counts[0])])
        sample = rng.dirichlet(distribution.concentration.double().cpu().numpy())
        action = torch.from_numpy(sample).to(state)
        counts[0] += 1
        self._chosen = state, action, distribution.log_prob(action)
        return action

    def learn(self, loss: Tensor) -> Tensor:
        """Return a loss that gives each of this module's parameters a gradient (which may be 0).

        Args:
            loss: Loss of the step with the chosen weights.
        """
        assert self._chosen is not None
        state, action, log_prob = self._chosen
        counts = self.get_buffer("counts")
        step = torch.cat([state.flatten(), action, log_prob[None], -loss.detach()[None] / 2])
        self.get_buffer("experience")[int(counts[1])] = step
        counts[1] += 1
        if not counts[2]:
            return self.zero()
        counts[2] -= 1
        return self._surrogate()

    def _end_horizon(self, following: Tensor) -> None:
        """End a horizon: store its experience with advantages and returns for the next updates."""
        self.get_buffer("last").copy_(self.get_buffer("experience"))
        states, _, _, rewards = self._last()
        rewards = _standardised(rewards)
        values = self.value(torch.cat([states, following[None]]))
        advantages = generalised_advantages(rewards, values, _DISCOUNT, _TRACE)
        returns = advantages + values[:-1]
        self.get_buffer("targets").copy_(torch.stack([advantages, returns]))
        self.get_buffer("counts")[1:] = torch.tensor([0, self.updates])

    def _last(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return the last horizon's states, actions, log-probabilities and rewards.

        Their shapes are (T, K, 2), (T, K), (T,) and (T,).
        """
        last = self.get_buffer("last").clone()
        states, actions, log_probs, rewards = last.split(self._widths, dim=1)
        states = states.unflatten(1, (-1, _FEATURES))
        return states, actions, log_probs.squeeze(1), rewards.squeeze(1)

    def _surrogate(self) -> Tensor:
        """Return PPO's clipped objective plus the error of the critic on the last horizon."""
        states, actions, log_probs, _ = self._last()
        advantages, returns = self.get_buffer("targets").clone()
        advantages = _standardised(advantages)
        now = self.distribution(states).log_prob(actions)
        ratio = (now - log_probs).exp()
        clipped = ratio.clamp(1 - _CLIP, 1 + _CLIP)
        actor = -torch.minimum(ratio * advantages, clipped * advantages).mean()
        critic = (self.value(states) - returns).square().mean() / 2
        return actor + critic


def generalised_advantages(
    rewards: Tensor, values: Tensor, discount: float, trace: float
) -> Tensor:
    r"""Return the generalised advantages (GAE) of the steps of a horizon.

    .. math:: A_t = \sum_l (\gamma\lambda)^l (r_{t+l} + \gamma V_{t+l+1} - V_{t+l})

    Args:
        rewards: Rewards (T,).
        values: Values (T + 1,), the last of the following state.
        discount: γ.
        trace: λ.
    """
    errors = rewards + discount * values[1:] - values[:-1]
    advantages = torch.zeros_like(rewards)
    following = rewards.new_zeros(())
    for t in reversed(range(len(rewards))):
        following = errors[t] + discount * trace * following
        advantages[t] = following
    return advantages


def _small_network(inputs: int) -> nn.Sequential:
    """Return a network to (…, 1), whose last layer is 0, so that teachers start equal."""
    network = nn.Sequential(nn.Linear(inputs, 16), nn.Tanh(), nn.Linear(16, 1))
    nn.init.zeros_(network[2].weight)  # type: ignore[arg-type]
    nn.init.zeros_(network[2].bias)  # type: ignore[arg-type]
    return network


def _standardised(values: Tensor) -> Tensor:
    """Return numbers with mean 0 and deviation 1; equal ones become 0."""
    return (values - values.mean()) / values.std().clamp(min=1e-8)
