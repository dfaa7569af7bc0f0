"""DCLR: InfoNCE without the false negatives that another model finds, and with noise as further negatives."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from opencse.foundation.numbers import check_least, check_range
from opencse.foundation.tensors import move
from opencse.losses.info_nce import InfoNCELoss
from opencse.losses.term import Context, Embeddings


@dataclass(frozen=True, kw_only=True)
class FalseNegatives:
    """In-batch negatives that a complementary model finds too similar and that are left out (DCLR eq. 5).

    Attributes:
        teacher: Name of the complementary model.
        threshold: φ; in-batch candidates with at least this cosine to the anchor count as false negatives.
        center: Subtract the mean vector of the anchors of the batch first. Otherwise a model that was never trained for
            similarity finds nearly all sentences similar.
    """

    teacher: str
    threshold: float = 0.9
    center: bool = False

    def __post_init__(self) -> None:
        check_range(self, "(-1, 1]", "threshold")


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
    """

    times: float = 1.0
    steps: int = 4
    step_size: float = 0.1
    temperature: float = 0.05

    def __post_init__(self) -> None:
        check_range(self, "(0, inf)", "times", "temperature")
        check_least(self, 0, "steps", "step_size")

    def draw(self, anchors: Tensor, step: int) -> Tensor:
        """Return unit vectors (K, d) without a gradient.

        Args:
            anchors: Unit vectors (n, d).
            step: The training step, which is the seed of the noise.
        """
        generator = torch.Generator("cpu").manual_seed(step)
        count = max(1, round(self.times * len(anchors)))
        # On the CPU, so that the noise is the same on every device.
        normal = torch.randn(count, anchors.shape[1], generator=generator, dtype=torch.float64, device="cpu")
        noise = move(F.normalize(normal, dim=-1).to(anchors.dtype), anchors.device)
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


@dataclass(frozen=True, kw_only=True)
class DCLRLoss(InfoNCELoss):
    r"""InfoNCE without the false negatives of the batch, and with noise negatives v (Zhou et al., ACL 2022, eq. 9).

    .. math:: L_i = -\log \frac{e^{c(a_i, p_i)/t}}{\sum_j w_{ij} e^{c(a_i, p_j)/t} + \sum_k e^{c(a_i, v_k)/t}}

    Attributes:
        false_negatives: Which in-batch candidates weigh 0 by another model's similarities; by default all weigh 1.
        noise: Random vectors v as additional negatives; by default none.

    Example:
        >>> vectors = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
        >>> teachers = {"a": {"anchor": vectors, "twin": vectors}}
        >>> loss = DCLRLoss(false_negatives=FalseNegatives(teacher="a", threshold=0.9))
        >>> output = loss(vectors, vectors, context=Context(teachers=teachers))
        >>> f"{output.value:.3f}, {output.reports['false_negatives']:.2f} of the pairs left out"
        '0.000, 0.33 of the pairs left out'
    """

    kind: ClassVar[str] = "dclr"

    false_negatives: FalseNegatives | None = None
    noise: NoiseNegatives | None = None

    @property
    def teachers(self) -> tuple[str, ...]:
        """The model that identifies false negatives."""
        return () if self.false_negatives is None else (self.false_negatives.teacher,)

    def adjusted(self, cosines: Tensor, present: Embeddings, context: Context) -> tuple[Tensor, Tensor | float]:
        """See the base class; a false negative has the cosine -∞."""
        if self.false_negatives is None:
            return cosines, 0.0
        return cosines.masked_fill(self._mask(present, context), -math.inf), 0.0

    def shared_negatives(self, anchors: Tensor, context: Context) -> list[Tensor]:
        """Return the noise."""
        return [] if self.noise is None else [self.noise.draw(anchors, context.step)]

    def reports(
        self, cosines: Tensor, hard: dict[str, Tensor], present: Embeddings, rows: Tensor, context: Context
    ) -> dict[str, Tensor]:
        """See the base class; `false_negatives` is their share of the in-batch negatives."""
        reports = super().reports(cosines, hard, present, rows, context)
        if self.false_negatives is not None:
            mask = self._mask(present, context)
            reports["false_negatives"] = mask.sum() / max(mask.numel() - len(mask), 1)
        return reports

    def _mask(self, present: Embeddings, context: Context) -> Tensor:
        """Return which in-batch candidates are false negatives, (B, B)."""
        settings = self.false_negatives
        assert settings is not None
        vectors, rows = context.teachers[settings.teacher], context.rows(present, self.anchor)
        mean = vectors[self.anchor][rows].mean(dim=0) if settings.center else 0.0
        a, b = (F.normalize(vectors[view] - mean, dim=-1) for view in (self.anchor, self.positive))
        cosines = a @ b.T
        return (cosines >= settings.threshold) & ~torch.eye(len(cosines), dtype=torch.bool, device=cosines.device)
