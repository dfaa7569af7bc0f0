"""The contrastive family: InfoNCE, hard negatives, two temperatures (HiNCE), additive margins (IFM, BYOP)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from opencse.objectives.margin import Margin
from opencse.objectives.term import Context, Embeddings, Term


@dataclass(frozen=True, kw_only=True)
class Contrastive(Term):
    r"""In-batch contrastive loss in all of its published forms.

    With c the cosine, t the temperature and t' that of the hard negatives,

    .. math:: L_i = -\log \frac{e^{c(a_i, p_i)/t}}{\sum_j e^{c(a_i, p_j)/t} + \sum_j w_{ij} e^{c(a_i, n_j)/t'}}

    averaged over the rows that have both anchor and positive. Sources: SimCSE (Gao et al., EMNLP 2021) eq. 1 and 5;
    HiNCE (SAN paper) eq. 2 for t'; IFM (Robinson et al., NeurIPS 2021) and BYOP for margins. Candidates and
    negatives that a row lacks are left out of every sum.

    Attributes:
        anchor: View of the rows.
        positive: View of the in-batch candidates.
        negatives: Views with hard negatives.
        temperature: t.
        negative_temperature: t', for the hard negatives only (HiNCE); t where absent.
        negative_scope: Whether each anchor meets the hard negatives of `all` rows or only of its `own`.
        own_negative_weight: Weight w of a row's own hard negatives in the denominator (SimCSE's is its logarithm).
        symmetric: Average with the same loss of positives against anchors.
        margin: A shift of the cosines before the softmax.
    """

    kind: ClassVar[str] = "contrastive"

    anchor: str = "anchor"
    positive: str = "twin"
    negatives: tuple[str, ...] = ()
    temperature: float = 0.05
    negative_temperature: float | None = None
    negative_scope: Literal["all", "own"] = "all"
    own_negative_weight: float = 1.0
    symmetric: bool = False
    margin: Margin | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.temperature <= 0 or (self.negative_temperature is not None and self.negative_temperature <= 0):
            raise ValueError("temperatures must be positive")
        if self.own_negative_weight <= 0:
            raise ValueError("own_negative_weight must be positive")
        if not self.negatives and self.negative_temperature is not None:
            raise ValueError("negative_temperature without negatives has no effect: name the view in `negatives`")
        if self.margin is not None and self.margin.axis == "candidate" and self.negatives:
            raise ValueError("a margin of the candidate's axis is not defined for hard negatives")

    @property
    def views(self) -> tuple[str, ...]:
        """Anchor, positive, and the hard negatives."""
        return (self.anchor, self.positive, *self.negatives)

    def warnings(self) -> list[str]:
        """A margin without effect."""
        if self.margin is not None and self.margin.is_identity:
            return [
                f"the margin '{self.margin.signs}' ({self.margin.size}) shifts all logits alike, "
                "so that loss and gradient are those of plain InfoNCE"
            ]
        return []

    def __call__(self, embeddings: Embeddings, present: Embeddings, context: Context) -> Tensor:
        """See the class; cost is O(B² d) time and O(B²) memory."""
        unit = {view: F.normalize(embeddings[view], dim=-1) for view in self.views}
        cosines = unit[self.anchor] @ unit[self.positive].T
        hard = [unit[self.anchor] @ unit[view].T for view in self.negatives]
        here = present[self.anchor] & present[self.positive]
        self._report(cosines, hard, present, here, context)

        def loss(margin: Margin | None) -> Tensor:
            forward = self._cross_entropy(cosines, hard, present, present[self.positive], here, margin)
            if not self.symmetric:
                return forward
            backward = self._cross_entropy(cosines.T, [], present, present[self.anchor], here, margin)
            return (forward + backward) / 2

        if self.margin is None:
            return loss(None)
        return (loss(None) + loss(self.margin)) / 2 if self.margin.mix else loss(self.margin)

    def _cross_entropy(
        self,
        cosines: Tensor,
        hard: list[Tensor],
        present: Embeddings,
        candidates: Tensor,
        here: Tensor,
        margin: Margin | None,
    ) -> Tensor:
        """Mean over the rows `here` of the cross-entropy against the diagonal of `cosines`."""
        shift = None
        if margin is not None:
            cosines, shift = margin.shift(cosines, int(candidates.sum()))
        blocks = [(cosines / self.temperature).masked_fill(~candidates, -math.inf)]
        blocks += [
            self._hard_logits(block if shift is None else block + shift, present[view])
            for view, block in zip(self.negatives, hard, strict=False)
        ]
        rows = here.nonzero().squeeze(1)
        if rows.numel() == 0:
            return cosines.sum() * 0
        return F.cross_entropy(torch.cat(blocks, dim=1)[rows], rows)

    def _hard_logits(self, cosines: Tensor, present: Tensor) -> Tensor:
        logits = cosines / (self.negative_temperature or self.temperature)
        own = torch.eye(len(logits), dtype=torch.bool, device=logits.device)
        if self.own_negative_weight != 1:
            logits = logits + own.to(logits.dtype) * math.log(self.own_negative_weight)
        allowed = present.expand_as(own) if self.negative_scope == "all" else own & present
        return logits.masked_fill(~allowed, -math.inf)

    def _report(self, cosines: Tensor, hard: list[Tensor], present: Embeddings, here: Tensor, context: Context) -> None:
        """Cosine of positives, of other pairs and of hard negatives; share of anchors nearest to their own positive."""
        if not here.any():
            return
        with torch.no_grad():
            block = cosines.detach()[here][:, here]
            count = len(block)
            nearest = block.argmax(dim=1) == torch.arange(len(block), device=block.device)
            context.report(f"{self.name}/accuracy", nearest.sum() / count)
            context.report(f"{self.name}/cos_positive", block.diagonal().sum() / count)
            others = (block.sum() - block.diagonal().sum()) / max(count * (count - 1), 1)
            context.report(f"{self.name}/cos_other", others)
            for view, own in zip(self.negatives, hard, strict=True):
                both = here & present[view]
                context.report(f"{self.name}/cos_{view}", own.diagonal()[both].sum() / both.sum().clamp(min=1))
