"""ArcCSE's margin: an angle that is added to the one between anchor and positive."""

from __future__ import annotations

import math

import torch
from torch import Tensor

_NEAR_ONE = 1e-6  # the derivative of an angle is infinite where vectors coincide


def add_angle(cosines: Tensor, degrees: float) -> Tensor:
    """Return the cosines of angles that are larger by a margin: cos(θ + m) (ArcCSE eq. 4; ArcFace, CVPR 2019).

    From θ + m = 180° on, where the cosine would rise again, it goes on falling linearly. Where θ is within a tenth of a
    degree of 0 no gradient flows: there is nothing left to turn.

    Args:
        cosines: Any shape.
        degrees: m.
    """
    m = math.radians(degrees)
    safe = cosines.clamp(-1 + _NEAR_ONE, 1 - _NEAR_ONE)
    turned = safe * math.cos(m) - (1 - safe.square()).sqrt() * math.sin(m)
    return torch.where(safe > -math.cos(m), turned, safe + math.cos(m) - 1)
