"""NT-Xent: every vector of the batch looks for its partner among all others (SimCLR, ConSERT, DeCLUTR)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from opencse.foundation.numbers import check_range
from opencse.losses.base import Context, Embeddings, Loss, LossOutput


@dataclass(frozen=True, kw_only=True)
class NTXentLoss(Loss):
    r"""Normalised temperature-scaled cross-entropy, NT-Xent, in both directions.

    .. math:: L = -\frac{1}{2N} \sum_{i=1}^{2N}
        \log \frac{e^{c(x_i, x_{i'})/t}}{\sum_{k \ne i} e^{c(x_i, x_k)/t}}

    N anchors and N positives are 2N points; i' is the partner of i. Unlike InfoNCE, the anchors are
    negatives of each other, and the positives look for their anchors too. Sources: SimCLR (Chen et
    al., ICML 2020) eq. 1; ConSERT (Yan et al., ACL 2021) eq. 1, whose code adds the means of both
    directions (twice this value); DeCLUTR (Giorgi et al., ACL 2021) eq. 2.

    Attributes:
        pairs: Each names an anchor and its positives. If there are several positives, their mean
            vector is the partner (DeCLUTR). Two pairs of one row are negatives of each other.
        temperature: t, in units of cosine similarity.

    Example:
        >>> anchors, positives = torch.eye(2), torch.tensor([[1.0, 0.0], [0.0, 1.0]])
        >>> output = NTXentLoss(temperature=0.1)(anchors, positives)
        >>> f"{output.value:.4f}, accuracy {output.reports['accuracy']:.0f}"
        '0.0001, accuracy 1'
    """

    kind: ClassVar[str] = "nt_xent"
    view_fields: ClassVar[tuple[str, ...]] = ("pairs",)

    pairs: tuple[tuple[str, ...], ...] = (("anchor", "twin"),)
    temperature: float = 0.05

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(self, "(0, inf)", "temperature")
        if not self.pairs or any(len(pair) < 2 for pair in self.pairs):
            raise ValueError("pairs must list anchors, each with at least one positive")

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; cost is O(P² B² d) for P pairs a row."""
        anchors = []
        partners = []
        for anchor, *positives in self.pairs:
            rows = context.rows(present, anchor, *positives)
            anchors.append(embeddings[anchor][rows])
            stacked = torch.stack([embeddings[view][rows] for view in positives])
            partners.append(stacked.mean(dim=0))
        points = F.normalize(torch.cat([*anchors, *partners]), dim=-1)
        count = len(points) // 2
        if count < 1:
            return self.zero(embeddings)

        cosines = points @ points.T
        itself = torch.eye(len(points), dtype=torch.bool, device=points.device)
        logits = (cosines / self.temperature).masked_fill(itself, -math.inf)
        targets = torch.arange(len(points), device=points.device).roll(count)
        reports = self._reports(cosines, logits, targets, itself)
        return LossOutput(F.cross_entropy(logits, targets), reports)

    @torch.no_grad()
    def _reports(
        self, cosines: Tensor, logits: Tensor, targets: Tensor, itself: Tensor
    ) -> dict[str, Tensor]:
        """Return how often the partner is nearest, and the mean cosines of partners and others."""
        found = logits.argmax(dim=1) == targets
        partner = cosines.gather(1, targets[:, None])
        reports = {"accuracy": found.to(cosines.dtype).mean(), "positive": partner.mean()}
        others = len(cosines) - 2  # of each row: neither the point itself nor its partner
        if others:
            rest = cosines.masked_fill(itself, 0.0).sum() - partner.sum()
            reports["negative"] = rest / (len(cosines) * others)
        return reports
