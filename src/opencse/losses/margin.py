"""Additive margins on cosines, which cover the perturbations of IFM and BYOP.

A margin adds `s_p·m` to the cosine of each positive and `s_n·m` to those of the negatives. A constant on all logits
does not change a softmax, so for a margin along the anchor axis only `(s_p − s_n)·m` matters: `p-n-` is plain InfoNCE,
`p+` equals `n-`, and `p-n+` with m equals `p-` with 2m. A positive total makes the task easier (BYOP; it mostly
shrinks the gradient), a negative one harder (IFM; additive-margin softmax).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor


@dataclass(frozen=True, kw_only=True)
class Margin:
    """A margin in cosine units, before the division by the temperature.

    Attributes:
        signs: Notation of the paper: `p` for positive and `n` for negative logits, each with `+` or `-`, such as
            `"p+n-"`, `"p-n+"`, `"n-"` (BYOP §3; IFM is `"p-n+"`).
        size: m, a constant (BYOP's C), or `"dynamic"` (BYOP's D): the cosine of the positive pair over N - 1.
        axis: Axis of a dynamic margin: `anchor` (all logits of a row) or `candidate` (all logits of a column; the
            published D scores fit this axis better).
        mix: Average the shifted loss with the unshifted one (BYOP's -M; IFM with its weight 1).
        detach: Stop the gradient through a dynamic margin.
    """

    signs: str
    size: float | Literal["dynamic"]
    axis: Literal["anchor", "candidate"] = "anchor"
    mix: bool = False
    detach: bool = True

    def __post_init__(self) -> None:
        if not re.fullmatch(r"(?=.)(p[+-])?(n[+-])?", self.signs):
            raise ValueError(f"signs must read like 'p+n-', 'p-' or 'n+', not '{self.signs}'")
        if isinstance(self.size, float) and self.size < 0:
            raise ValueError("size must not be negative: its direction is given by the signs")

    @property
    def positive_sign(self) -> int:
        """Sign of the shift of positive logits: 1, -1, or 0 for no shift."""
        return self._sign("p")

    @property
    def negative_sign(self) -> int:
        """Sign of the shift of negative logits: 1, -1, or 0 for no shift."""
        return self._sign("n")

    @property
    def effective(self) -> float:
        """Effective margin of an anchor in units of m: the positive sign minus the negative sign."""
        return float(self.positive_sign - self.negative_sign)

    @property
    def is_identity(self) -> bool:
        """Whether the loss and its gradient are the same as without a margin."""
        return self.size == 0 or (self.effective == 0 and (self.axis == "anchor" or self.size != "dynamic"))

    def _sign(self, letter: str) -> int:
        at = self.signs.find(letter)
        return 0 if at < 0 else 1 if self.signs[at + 1] == "+" else -1

    def shift(self, cosines: Tensor, width: int) -> tuple[Tensor, Tensor | None]:
        """Return the shifted in-batch cosines, and the shift of further negatives of the same anchors.

        Args:
            cosines: (N, C), anchors by in-batch candidates, the positives on the diagonal.
            width: Number of present candidates among the C, which is N in the paper's N - 1.

        Returns:
            The shifted cosines (N, C), and the shift (N, 1) of other negatives of each anchor, which have no column in
            `cosines`; None for margins along the candidate axis.
        """
        m = self._size(cosines, width)
        per_row = m.view(-1, 1) if self.axis == "anchor" else m.view(1, -1)
        on_diagonal = torch.eye(*cosines.shape, dtype=torch.bool, device=cosines.device)
        signs = torch.where(on_diagonal, self.positive_sign, self.negative_sign).to(cosines.dtype)
        others = self.negative_sign * m.view(-1, 1) if self.axis == "anchor" else None
        return cosines + signs * per_row, others

    def _size(self, cosines: Tensor, width: int) -> Tensor:
        """Return the margin of each anchor or candidate, (N,)."""
        if self.size == "dynamic":
            m = cosines.diagonal() / max(width - 1, 1)
            return m.detach() if self.detach else m
        return cosines.new_full((cosines.shape[0],), self.size)


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
