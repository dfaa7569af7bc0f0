"""Bounds on the difference of two cosines: the margins of OssCSE and SNCSE, and ArcCSE's triplet loss."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch.nn.functional as F

from opencse.losses.term import Context, Embeddings, LossOutput, Term


@dataclass(frozen=True, kw_only=True)
class TwoWayMarginLoss(Term):
    r"""Keep one view closer to the anchor than another, by at least α and at most β.

    With c the cosine and d = c(a, farther) - c(a, closer),

    .. math:: L_i = \max(d_i + \alpha, 0) + \max(-d_i - \beta, 0)

    averaged over the rows that have all three views. It is zero if α ≤ c(a, closer) - c(a, farther) ≤ β. Sources:
    OssCSE eq. 3 (closer: a paraphrase, farther: the negation; α = 0.05, β = 0.2); SNCSE's bidirectional margin loss
    (closer: the twin; α = 0.1, β = 0.3); with β = inf ArcCSE's triplet loss (Zhang et al., ACL 2022, eq. 7), where less
    of the sentence is masked in the closer view.

    Attributes:
        anchor: View of the anchors.
        closer: View that should be closer to the anchor.
        farther: View that should be farther from the anchor, though related to it.
        margin: α and β, in cosine units; β may be `inf`.

    Example:
        >>> import torch
        >>> anchor, paraphrase = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.8, 0.6]])
        >>> loss = TwoWayMarginLoss(closer="paraphrase", farther="negation", margin=(0.05, 0.2))
        >>> for cosine in (0.7, 0.8, 0.0):  # of anchor and negation
        ...     negation = torch.tensor([[cosine, (1 - cosine**2) ** 0.5]])
        ...     print(f"{loss(anchor, paraphrase, negation).value:.2f}")
        0.00
        0.05
        0.60
    """

    kind: ClassVar[str] = "two_way_margin"
    view_fields: ClassVar[tuple[str, ...]] = ("anchor", "closer", "farther")

    anchor: str = "anchor"
    closer: str
    farther: str
    margin: tuple[float, float]

    def __post_init__(self) -> None:
        super().__post_init__()
        lower, upper = self.margin
        if not 0 <= lower <= upper:
            raise ValueError(f"margin must be two numbers with 0 <= lower <= upper, not {list(self.margin)}")

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; cost is O(B d)."""
        rows = context.rows(present, *self.views)
        if not len(rows):
            return self.zero(embeddings)
        unit = {view: F.normalize(embeddings[view][rows], dim=-1) for view in self.views}
        near = (unit[self.anchor] * unit[self.closer]).sum(dim=-1)
        far = (unit[self.anchor] * unit[self.farther]).sum(dim=-1)
        gap, (lower, upper) = near - far, self.margin
        loss = F.relu(lower - gap)
        if not math.isinf(upper):
            loss = loss + F.relu(gap - upper)
        inside = ((gap >= lower) & (gap <= upper)).to(gap.dtype).mean()
        return LossOutput(loss.mean(), {"gap": gap.detach().mean(), "inside": inside})
