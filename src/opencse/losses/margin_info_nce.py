"""InfoNCE with an additive margin on the cosines, as in IFM and BYOP."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from opencse.losses.info_nce import InfoNCELoss
from opencse.losses.term import Context, Embeddings


@dataclass(frozen=True, kw_only=True)
class MarginInfoNCELoss(InfoNCELoss):
    r"""InfoNCE with s_p·m added to the cosine of each positive, and s_n·m to those of the negatives.

    A constant on all logits does not change a softmax, so for a margin along the anchor axis only `(s_p − s_n)·m`
    matters: `p-n-` is plain InfoNCE, `p+` equals `n-`, and `p-n+` with m equals `p-` with 2m. A positive total makes
    the task easier (it mostly shrinks the gradient), a negative one harder (additive-margin softmax). Sources: IFM
    (Robinson et al., NeurIPS 2021) eq. 3, which is `p-n+`; BYOP §3. IFM and BYOP's -M average it with plain InfoNCE:
    two terms of weight 0.5.

    Attributes:
        signs: Notation of BYOP: `p` for positive and `n` for negative logits, each with `+` or `-`, such as `"p+n-"`.
        size: m in cosine units, a constant (BYOP's C), or `"dynamic"` (D): the cosine of the positive pair over N - 1.
        axis: Axis of a dynamic margin: `anchor` (all logits of a row) or `candidate` (all logits of a column; the
            published D scores fit this axis better).
        detach: Stop the gradient through a dynamic margin.

    Example:
        >>> vectors = torch.eye(2)
        >>> for signs in ("p-n-", "p-", "p+"):
        ...     loss = MarginInfoNCELoss(temperature=0.5, signs=signs, size=0.1)
        ...     print(signs, f"{loss(vectors, vectors).value:.3f}")
        p-n- 0.127
        p- 0.153
        p+ 0.105
    """

    kind: ClassVar[str] = "margin_info_nce"

    signs: str
    size: float | Literal["dynamic"]
    axis: Literal["anchor", "candidate"] = "anchor"
    detach: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not re.fullmatch(r"(?=.)(p[+-])?(n[+-])?", self.signs):
            raise ValueError(f"signs must read like 'p+n-', 'p-' or 'n+', not '{self.signs}'")
        if isinstance(self.size, float) and self.size < 0:
            raise ValueError("size must not be negative: its direction is given by the signs")
        if self.axis == "candidate" and self.negatives:
            raise ValueError("a margin of the candidate's axis is not defined for hard negatives")

    @property
    def effective(self) -> int:
        """Margin of an anchor in units of m: the sign of positive logits minus that of negative ones."""
        return self._sign("p") - self._sign("n")

    def _sign(self, letter: str) -> int:
        return 1 if f"{letter}+" in self.signs else -1 if letter in self.signs else 0

    def warnings(self) -> list[str]:
        """Warn of a margin without effect."""
        per_anchor = self.axis == "anchor" or self.size != "dynamic"
        if self.size != 0 and (self.effective or not per_anchor):
            return []
        shift = f"the margin '{self.signs}' ({self.size}) shifts all logits equally"
        return [f"{shift}, so loss and gradient are those of plain InfoNCE"]

    def adjusted(self, cosines: Tensor, present: Embeddings, context: Context) -> tuple[Tensor, Tensor | float]:
        """See the base class; a hard negative has the margin of its anchor."""
        size = self._sizes(cosines, len(context.host_rows(present, self.positive)))
        on_diagonal = torch.eye(*cosines.shape, dtype=torch.bool, device=cosines.device)
        signs = torch.where(on_diagonal, self._sign("p"), self._sign("n")).to(cosines.dtype)
        shift = size[:, None] if self.axis == "anchor" else size[None]
        return cosines + signs * shift, self._sign("n") * size[:, None]

    def _sizes(self, cosines: Tensor, candidates: int) -> Tensor:
        """Return m of each anchor or candidate, (B,); `candidates` is the paper's N."""
        if self.size != "dynamic":
            return cosines.new_full((len(cosines),), self.size)
        m = cosines.diagonal() / max(candidates - 1, 1)
        return m.detach() if self.detach else m
