"""ArcCSE's angular margin between anchor and positive."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_NEAR_ONE = 1e-6  # the derivative of the angle is infinite for equal vectors


def add_angle(cosines: Tensor, degrees: float) -> Tensor:
    """Return cos(θ + m): add a margin to the angles of the given cosines (ArcCSE eq. 4; ArcFace, CVPR 2019).

    Beyond θ + m = 180°, where the cosine would rise again, it keeps falling linearly. Within a tenth of a degree of
    θ = 0 there is no gradient.

    Args:
        cosines: Cosines of any shape.
        degrees: The margin m in degrees.
    """
    m = math.radians(degrees)
    safe = cosines.clamp(-1 + _NEAR_ONE, 1 - _NEAR_ONE)
    turned = safe * math.cos(m) - (1 - safe.square()).sqrt() * math.sin(m)
    return torch.where(safe > -math.cos(m), turned, safe + math.cos(m) - 1)
