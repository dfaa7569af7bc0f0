"""Weights for false negatives from another model, and noise negatives (DCLR, Zhou et al., ACL 2022)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from opencse.foundation.tensors import move
from opencse.losses.term import Embeddings


@dataclass(frozen=True, kw_only=True)
class FalseNegatives:
    """Lower weights for in-batch negatives that a complementary model finds too similar (DCLR eq. 5).

    Attributes:
        teacher: Name of the complementary model.
        threshold: φ; in-batch candidates with at least this cosine to the anchor count as false negatives.
        weight: Their weight in the denominator; 0 leaves them out, as published.
        center: Subtract the mean vector of the anchors of the batch first. Otherwise a model that was never trained for
            similarity finds nearly all sentences similar.
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

    def log_weights(self, teachers: Embeddings, anchors: Tensor, anchor: str, positive: str) -> Tensor:
        """Return the logarithms of the weights of in-batch candidates, (B, B); 0 for positives and true negatives.

        Args:
            teachers: Vectors (B, d_t) by view.
            anchors: Numbers of the rows that have an anchor.
            anchor: View of the anchors.
            positive: View of the candidates.
        """
        mean = teachers[anchor][anchors].mean(dim=0) if self.center else 0.0
        a, b = (F.normalize(teachers[view] - mean, dim=-1) for view in (anchor, positive))
        cosines = a @ b.T
        own = torch.eye(len(cosines), dtype=torch.bool, device=cosines.device)
        log_weight = math.log(self.weight) if self.weight else -math.inf
        return torch.zeros_like(cosines).masked_fill((cosines >= self.threshold) & ~own, log_weight)


@dataclass(frozen=True, kw_only=True)
class NoiseNegatives:
    """Noise vectors as additional negatives, moved towards the anchors by gradient ascent (DCLR eq. 6-8).

    The vectors start as standard normal noise. Each step of gradient ascent on Σ_i log Σ_k exp(c(a_i, v_k)/t) moves
    each by `step_size` in the direction of its gradient. They depend only on the training step and the anchors, so that
    all processes have the same vectors.

    Attributes:
        times: Number of vectors, as a multiple of the batch size.
        steps: Number of gradient ascent steps.
        step_size: Length of a step relative to the length of the vector.
        temperature: t in that objective.
        seed: Seed of the noise, together with the training step.
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
        """Return unit vectors (K, d) without a gradient.

        Args:
            anchors: Unit vectors (n, d).
            step: The training step.
        """
        generator = torch.Generator("cpu").manual_seed((self.seed * 0x9E3779B1 + step) % 2**32)  # a 32-bit seed
        count = max(1, round(self.times * len(anchors)))
        # On the CPU, so that the noise is the same on every device.
        drawn = torch.randn(count, anchors.shape[1], generator=generator, dtype=torch.float64, device="cpu")
        noise = move(F.normalize(drawn, dim=-1).to(anchors.dtype), anchors.device)
        anchors = anchors.detach()
        for _ in range(self.steps):
            noise = F.normalize(noise + self.step_size * F.normalize(self._gradient(anchors, noise), dim=-1), dim=-1)
        return noise

    def _gradient(self, anchors: Tensor, noise: Tensor) -> Tensor:
        """Return the gradient of the objective with respect to the noise on the unit sphere, (K, d) (no autograd)."""
        cosines = anchors @ noise.T
        shares = torch.softmax(cosines / self.temperature, dim=1)
        pull = shares.T @ anchors
        return pull - (shares * cosines).sum(dim=0, keepdim=True).T * noise
