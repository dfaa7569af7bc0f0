"""Weighting of false negatives by another model, and noise as further negatives (DCLR, Zhou et al., ACL 2022)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from opencse.objectives.term import Embeddings


@dataclass(frozen=True, kw_only=True)
class FalseNegatives:
    """In-batch negatives that a complementary model finds too similar count less (DCLR eq. 5).

    Attributes:
        teacher: Name of the complementary model.
        threshold: φ; in-batch candidates of at least this cosine to the anchor are taken for false negatives.
        weight: Their weight in the denominator; 0 leaves them out, as published.
        center: Take the mean of the batch's anchors from the model's vectors first. Without it a model that was never
            trained for similarity finds nearly all sentences alike.
    """

    teacher: str
    threshold: float = 0.9
    weight: float = 0.0
    center: bool = False

    def __post_init__(self) -> None:
        if not -1 < self.threshold <= 1:
            raise ValueError("threshold must be a cosine above -1")
        if not 0 <= self.weight <= 1:
            raise ValueError("weight must be between 0 and 1")

    def log_weights(self, teachers: Embeddings, present: Embeddings, anchor: str, positive: str) -> Tensor:
        """Logarithms of the weights of in-batch candidates, (B, B): 0 on the diagonal and for true negatives."""
        mean = teachers[anchor][present[anchor]].mean(dim=0) if self.center else 0.0
        a, b = (F.normalize(teachers[view] - mean, dim=-1) for view in (anchor, positive))
        cosines = a @ b.T
        own = torch.eye(len(cosines), dtype=torch.bool, device=cosines.device)
        log_weight = math.log(self.weight) if self.weight else -math.inf
        return torch.zeros_like(cosines).masked_fill((cosines >= self.threshold) & ~own, log_weight)


@dataclass(frozen=True, kw_only=True)
class NoiseNegatives:
    """Random vectors as further negatives, moved to where sentences crowd (DCLR eq. 6-8).

    The vectors start as standard normal noise. Each step of gradient ascent on Σ_i log Σ_k exp(c(a_i, v_k)/t) moves
    each by `step_size` in the direction of its gradient. They depend on the number of the training step and on the
    anchors alone, so that all processes have the same ones.

    Attributes:
        times: How many, as a multiple of the batch.
        steps: Steps of gradient ascent.
        step_size: Length of such a step as a share of the vector's own length.
        temperature: t in that objective.
        seed: With the number of the training step it determines the noise.
    """

    times: float = 1.0
    steps: int = 4
    step_size: float = 0.1
    temperature: float = 0.05
    seed: int = 0

    def __post_init__(self) -> None:
        if self.times <= 0 or self.steps < 0 or self.step_size < 0 or self.temperature <= 0:
            raise ValueError("times and temperature must be positive, steps and step_size not negative")

    def draw(self, anchors: Tensor, step: int) -> Tensor:
        """Unit vectors (K, d) that carry no gradient.

        Args:
            anchors: (n, d), unit vectors.
            step: The training step.
        """
        generator = torch.Generator().manual_seed((self.seed * 0x9E3779B1 + step) % 2**32)  # it takes 32 bits
        count = max(1, round(self.times * len(anchors)))
        drawn = torch.randn(count, anchors.shape[1], generator=generator, dtype=torch.float64)
        noise = F.normalize(drawn, dim=-1).to(anchors)
        anchors = anchors.detach()
        for _ in range(self.steps):
            noise = F.normalize(noise + self.step_size * F.normalize(self._gradient(anchors, noise), dim=-1), dim=-1)
        return noise

    def _gradient(self, anchors: Tensor, noise: Tensor) -> Tensor:
        """Return the objective's gradient with respect to the noise on the unit sphere, without autograd: (K, d)."""
        cosines = anchors @ noise.T
        shares = torch.softmax(cosines / self.temperature, dim=1)
        pull = shares.T @ anchors
        return pull - (shares * cosines).sum(dim=0, keepdim=True).T * noise
