"""Contrastive loss: InfoNCE with hard negatives, two temperatures, margins, weighted and random negatives."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from opencse.losses.false_negatives import FalseNegatives, NoiseNegatives
from opencse.losses.margin import Margin, add_angle
from opencse.losses.term import Context, Embeddings, LossOutput, Term


@dataclass(frozen=True, kw_only=True)
class Contrastive(Term):
    r"""InfoNCE loss over in-batch negatives (also NT-Xent, MultipleNegativesRankingLoss), with its published variants.

    With c the cosine, t the temperature and t' that of the hard negatives,

    .. math:: L_i = -\log \frac{e^{c(a_i, p_i)/t}}{\sum_j e^{c(a_i, p_j)/t} + \sum_j w_{ij} e^{c(a_i, n_j)/t'}}

    averaged over the rows that have both anchor and positive. Sources: SimCSE (Gao et al., EMNLP 2021) eq. 1 and 5;
    HiNCE (SAN paper) eq. 2 for t'; IFM (Robinson et al., NeurIPS 2021) and BYOP for margins; ArcCSE (Zhang et al., ACL
    2022) eq. 4 for the angular one; DCLR (Zhou et al., ACL 2022) eq. 9 for weights of in-batch candidates and for
    noise. Missing candidates and negatives are left out of every sum.

    Attributes:
        anchor: View of the anchors.
        positive: View of the positives, which are in-batch negatives of the other rows.
        negatives: Views with hard negatives.
        temperature: t, in units of cosine similarity.
        negative_temperature: t', for the hard negatives only (HiNCE), or one for each of `negatives`; by default t.
        negative_scope: Whether each anchor is contrasted with the hard negatives of `all` rows or only of its `own`.
        own_negative_weight: Weight w of a row's own hard negatives in the denominator (SimCSE's is its logarithm).
        symmetric: Average with the same loss of positives against anchors.
        margin: Additive margin on the cosines before the softmax.
        angular_margin: Degrees added to the angle between anchor and positive.
        false_negatives: Weights of in-batch candidates from another model's similarities.
        noise: Random vectors as additional negatives.
    """

    kind: ClassVar[str] = "contrastive"
    view_fields: ClassVar[tuple[str, ...]] = ("anchor", "positive", "negatives")

    anchor: str = "anchor"
    positive: str = "twin"
    negatives: tuple[str, ...] = ()
    temperature: float = 0.05
    negative_temperature: float | tuple[float, ...] | None = None
    negative_scope: Literal["all", "own"] = "all"
    own_negative_weight: float = 1.0
    symmetric: bool = False
    margin: Margin | None = None
    angular_margin: float = 0.0
    false_negatives: FalseNegatives | None = None
    noise: NoiseNegatives | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        temperature = self.negative_temperature
        if isinstance(temperature, tuple) and len(temperature) != len(self.negatives):
            raise ValueError(f"{len(temperature)} values of negative_temperature, but {len(self.negatives)} negatives")
        if min(self.temperature, *self.negative_temperatures) <= 0:
            raise ValueError("temperatures must be positive")
        if self.own_negative_weight <= 0:
            raise ValueError("own_negative_weight must be positive")
        if not self.negatives and self.negative_temperature is not None:
            raise ValueError("negative_temperature without negatives has no effect: name the view in `negatives`")
        if self.margin is not None and self.margin.axis == "candidate" and self.negatives:
            raise ValueError("a margin of the candidate's axis is not defined for hard negatives")
        if not 0 <= self.angular_margin < 90:
            raise ValueError("angular_margin must be an angle of at least 0 and below 90 degrees")
        if self.noise is not None and self.margin is not None:
            raise ValueError("a margin is not defined for noise")

    @property
    def negative_temperatures(self) -> tuple[float, ...]:
        """Temperature t' of each view of hard negatives."""
        temperature = self.negative_temperature
        if isinstance(temperature, tuple):
            return temperature
        return (self.temperature if temperature is None else temperature,) * max(1, len(self.negatives))

    @property
    def teachers(self) -> tuple[str, ...]:
        """The model that identifies false negatives."""
        return () if self.false_negatives is None else (self.false_negatives.teacher,)

    def warnings(self) -> list[str]:
        """Warn of a margin without effect."""
        if self.margin is not None and self.margin.is_identity:
            return [
                f"the margin '{self.margin.signs}' ({self.margin.size}) shifts all logits equally, "
                "so loss and gradient are those of plain InfoNCE"
            ]
        return []

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; needs O(B² d) time and O(B²) memory."""
        unit = {view: F.normalize(embeddings[view], dim=-1) for view in self.views}
        cosines = unit[self.anchor] @ unit[self.positive].T
        hard = [unit[self.anchor] @ unit[view].T for view in self.negatives]
        rows = context.rows(present, self.anchor, self.positive)
        if not len(rows):
            return LossOutput(cosines.sum() * 0)
        reports = self._reports(cosines, hard, present, rows, context)
        weights = self._log_weights(cosines, present, context)
        if self.false_negatives is not None:
            reports["false_negatives"] = (weights < 0).sum() / max(weights.numel() - len(weights), 1)
        noise = self._noise(unit[self.anchor], rows, context)
        temperatures = self.negative_temperatures[: len(self.negatives)]
        if self.angular_margin:
            with_margin = add_angle(cosines.diagonal(), self.angular_margin)
            cosines = cosines.diagonal_scatter(with_margin)

        def loss(margin: Margin | None) -> Tensor:
            shifted, others = self._shifted(cosines, margin, present, self.positive, context)
            blocks = [
                shifted / self.temperature + weights,
                *(unit[self.anchor] @ v.T / self.temperature for v in noise),
            ]
            blocks += [
                self._hard_logits(block if others is None else block + others, present[view], temperature)
                for view, block, temperature in zip(self.negatives, hard, temperatures, strict=True)
            ]
            forward = self._cross_entropy(blocks, present[self.positive], rows)
            if not self.symmetric:
                return forward
            shifted, _ = self._shifted(cosines.T, margin, present, self.anchor, context)
            blocks = [shifted / self.temperature + weights.T]
            blocks += [unit[self.positive] @ v.T / self.temperature for v in noise]
            return (forward + self._cross_entropy(blocks, present[self.anchor], rows)) / 2

        mixed = self.margin is not None and self.margin.mix
        return LossOutput((loss(None) + loss(self.margin)) / 2 if mixed else loss(self.margin), reports)

    def _shifted(
        self, cosines: Tensor, margin: Margin | None, present: Embeddings, candidates: str, context: Context
    ) -> tuple[Tensor, Tensor | None]:
        if margin is None:
            return cosines, None
        return margin.shift(cosines, len(context.host_rows(present, candidates)))

    def _log_weights(self, cosines: Tensor, present: Embeddings, context: Context) -> Tensor:
        """Return the logarithms of the weights of in-batch candidates, (B, B), or a zero that broadcasts."""
        if self.false_negatives is None:
            return cosines.new_zeros(1, 1)
        vectors, anchors = context.teachers[self.false_negatives.teacher], context.rows(present, self.anchor)
        return self.false_negatives.log_weights(vectors, anchors, self.anchor, self.positive).to(cosines.dtype)

    def _noise(self, anchors: Tensor, rows: Tensor, context: Context) -> list[Tensor]:
        return [] if self.noise is None else [self.noise.draw(anchors[rows], context.step)]

    def _cross_entropy(self, blocks: list[Tensor], candidates: Tensor, rows: Tensor) -> Tensor:
        """Return the mean cross-entropy of some rows, whose targets are the diagonal of the first block."""
        logits = torch.cat([blocks[0].masked_fill(~candidates, -math.inf), *blocks[1:]], dim=1)
        return F.cross_entropy(logits[rows], rows)

    def _hard_logits(self, cosines: Tensor, present: Tensor, temperature: float) -> Tensor:
        logits = cosines / temperature
        own = torch.eye(len(logits), dtype=torch.bool, device=logits.device)
        if self.own_negative_weight != 1:
            logits = logits + own.to(logits.dtype) * math.log(self.own_negative_weight)
        allowed = present.expand_as(own) if self.negative_scope == "all" else own & present
        return logits.masked_fill(~allowed, -math.inf)

    def _reports(
        self, cosines: Tensor, hard: list[Tensor], present: Embeddings, rows: Tensor, context: Context
    ) -> dict[str, Tensor]:
        """Return the cosines of positives, other pairs and hard negatives, and the accuracy over candidates."""
        with torch.no_grad():
            block = cosines.detach()[rows][:, rows]
            count = len(block)
            nearest = block.argmax(dim=1) == torch.arange(len(block), device=block.device)
            reports = {
                "accuracy": nearest.sum() / count,
                "cos_positive": block.diagonal().sum() / count,
                "cos_other": (block.sum() - block.diagonal().sum()) / max(count * (count - 1), 1),
            }
            for view, own in zip(self.negatives, hard, strict=True):
                both = context.rows(present, self.anchor, self.positive, view)
                reports[f"cos_{view}"] = own.diagonal()[both].sum() / max(len(both), 1)
        return reports
