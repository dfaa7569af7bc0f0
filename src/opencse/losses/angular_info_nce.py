"""InfoNCE with a margin on the angle between anchor and positive, as in ArcCSE."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from opencse.losses.info_nce import InfoNCELoss
from opencse.losses.term import Context, Embeddings

_NEAR_ONE = 1e-6  # the derivative of the angle is infinite for equal vectors


@dataclass(frozen=True, kw_only=True)
class AngularInfoNCELoss(InfoNCELoss):
    r"""InfoNCE with cos(θ + m) in place of the cosine of each positive (ArcCSE's ArcCon loss).

    Source: Zhang et al., ACL 2022, eq. 4, after ArcFace (CVPR 2019).

    Attributes:
        degrees: m, the margin on the angle θ between anchor and positive.

    Example:
        >>> vectors = torch.eye(2)
        >>> for degrees in (0.0, 10.0, 60.0):
        ...     print(f"{AngularInfoNCELoss(temperature=0.5, degrees=degrees)(vectors, vectors).value:.3f}")
        0.127
        0.131
        0.314
    """

    kind: ClassVar[str] = "angular_info_nce"

    degrees: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.degrees < 90:
            raise ValueError("degrees must be an angle of at least 0 and below 90")

    def adjusted(self, cosines: Tensor, present: Embeddings, context: Context) -> tuple[Tensor, Tensor | float]:
        """See the base class."""
        return cosines.diagonal_scatter(add_angle(cosines.diagonal(), self.degrees)), 0.0


def add_angle(cosines: Tensor, degrees: float) -> Tensor:
    """Return cos(θ + m) of the given cosines, of any shape.

    Beyond θ + m = 180°, where the cosine would rise again, it keeps falling linearly. Within a tenth of a degree of
    θ = 0 there is no gradient.
    """
    m = math.radians(degrees)
    safe = cosines.clamp(-1 + _NEAR_ONE, 1 - _NEAR_ONE)
    turned = safe * math.cos(m) - (1 - safe.square()).sqrt() * math.sin(m)
    return torch.where(safe > -math.cos(m), turned, safe + math.cos(m) - 1)
