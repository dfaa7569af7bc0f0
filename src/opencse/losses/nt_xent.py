"""NT-Xent: every vector of the batch looks for its partner among all others (SimCLR, ConSERT, DeCLUTR)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from opencse.foundation.numbers import check_range
from opencse.foundation.tensors import move
from opencse.losses.base import (
    Context,
    Embeddings,
    Loss,
    LossOutput,
    global_mean,
    mean_reports,
    own_positions,
)


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
        """See the class; cost is O(P² b B d) for P pairs a row, of which this process has b."""
        anchors = []
        partners = []
        rows_of_pairs = []
        for anchor, *positives in self.pairs:
            host_rows = context.host_rows(present, anchor, *positives)
            rows_of_pairs.append(host_rows)
            rows = move(host_rows, context.device)
            anchors.append(embeddings[anchor][rows])
            stacked = torch.stack([embeddings[view][rows] for view in positives])
            partners.append(stacked.mean(dim=0))
        points = F.normalize(torch.cat([*anchors, *partners]), dim=-1)
        count = len(points) // 2
        if count < 1:
            return self.zero(embeddings)

        # The points of this process against the points of all.
        points = context.processes.all_rows(points)
        size = len(embeddings[anchor])
        own = move(own_positions(torch.cat(rows_of_pairs * 2), size, context), points.device)
        cosines = points[own] @ points.T
        itself = own[:, None] == torch.arange(len(points), device=points.device)
        logits = (cosines / self.temperature).masked_fill(itself, -math.inf)
        targets = (own + count) % len(points)
        reports = self._reports(cosines, logits, targets, itself, context)
        total = F.cross_entropy(logits, targets, reduction="sum")
        value = global_mean(total, len(own), context)
        return LossOutput(value, reports)

    @torch.no_grad()
    def _reports(
        self,
        cosines: Tensor,
        logits: Tensor,
        targets: Tensor,
        itself: Tensor,
        context: Context,
    ) -> dict[str, Tensor]:
        """Return how often the partner is nearest, and the mean cosines of partners and others."""
        found = logits.argmax(dim=1) == targets
        partner = cosines.gather(1, targets[:, None])
        own = len(cosines)
        sums = {
            "accuracy": (found.sum().to(cosines.dtype), own),
            "positive": (partner.sum(), own),
        }
        # Neither the point itself nor its partner is one of the others.
        others = cosines.shape[1] - 2
        if others:
            rest = cosines.masked_fill(itself, 0.0).sum() - partner.sum()
            sums["negative"] = (rest, own * others)

        return mean_reports(sums, context)
