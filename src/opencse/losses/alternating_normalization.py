"""DebCSE's loss: contrast batch-normalised vectors with the plain vectors of their positives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from opencse.foundation.numbers import check_least, check_range
from opencse.foundation.tensors import move, true_cells
from opencse.losses.base import (
    Context,
    Embeddings,
    Loss,
    LossOutput,
    global_mean,
    mean_reports,
    own_positions,
)

# As in batch_norm.
_EPSILON = 1e-5


@dataclass(frozen=True, kw_only=True)
class AlternatingNormalizationLoss(Loss):
    r"""Alternating normalisation with mined positives and negatives (DebCSE eq. 7-9).

    With h the vectors, z their batch normalisation, c the cosine and t the temperature, the loss of
    an anchor and one of its positives is D(z, h⁺) + D(z⁺, h), where for a row i

    .. math:: D(a, b)_i = -\log \frac{e^{c(a_i, b_i)/t}}
              {e^{c(a_i, b_i)/t} + \sum_k e^{c(a_i, z^-_{i,k})/t} + \sum_{j \ne i} e^{c(a_i, z_j)/t}}

    and z_j are the normalised vectors of the other rows in the role opposite to a. It is averaged
    over all pairs of an anchor and one of its positives. Missing views are left out of every sum
    and of the statistics.

    The denominators in the paper lack the first summand. That form (`decoupled`) is unbounded
    below: less similar negatives always lower it. The two are related by L = softplus(L_decoupled).

    Attributes:
        anchor: View of the anchors.
        positives: Views with positives.
        negatives: Views with mined negatives, each contrasted with the anchor of its own row.
        temperature: t.
        decoupled: Leave the positive out of the denominator, as published.
        normalize: Batch-normalise z; otherwise both towers are plain vectors (an ablation of the
            paper).
        stop_gradient: Stop the gradient through z.
        min_rows: A view present in fewer rows of the batch is normalised with the statistics of all
            views, because z over two rows would be ±1 in every feature. With 2, a view's own
            statistics are used, as published.

    Example:
        >>> anchor = torch.tensor([[1.0, 0.1], [-0.9, 0.2], [0.1, -1.0]])
        >>> loss = AlternatingNormalizationLoss(positives=("twin",), temperature=0.5)
        >>> f"{loss(anchor, anchor).value:.2f}, {loss(anchor, -anchor).value:.2f}"
        '0.21, 7.55'
    """

    kind: ClassVar[str] = "alternating_normalization"
    view_fields: ClassVar[tuple[str, ...]] = ("anchor", "positives", "negatives")

    anchor: str = "anchor"
    positives: tuple[str, ...]
    negatives: tuple[str, ...] = ()
    temperature: float = 0.05
    decoupled: bool = False
    normalize: bool = True
    stop_gradient: bool = False
    min_rows: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(self, "(0, inf)", "temperature")
        # One row has no variance.
        check_least(self, 2, "min_rows")
        if not self.positives:
            raise ValueError("at least one view of positives is needed")

    @property
    def needs_complete_batch(self) -> bool:
        """Whether vectors are normalised with the statistics of the batch."""
        return self.normalize

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; cost is O(m b B d) for m positives of the b rows of this process.

        Every process has the statistics of all rows, which take O(B d).
        """
        used = self._used_rows(present)
        if not any((used[self.anchor] & used[view]).any() for view in self.positives):
            return self.zero(embeddings)
        device = context.device
        shared = {view: context.processes.all_rows(embeddings[view]) for view in self.views}
        plain = {view: F.normalize(shared[view], dim=-1) for view in self.views}
        rows = {view: true_cells(mask, device) for view, mask in used.items()}
        all_vectors = torch.cat([shared[view][rows[view]] for view in self.views])
        target = {}
        for view in self.views:
            target[view] = self._target(shared[view], rows[view], all_vectors)
        masked = {view: (target[view], move(used[view], device)) for view in self.views}
        negatives = [masked[view] for view in self.negatives]

        size = len(used[self.anchor])
        is_own = torch.zeros(size, dtype=torch.bool, device="cpu")
        is_own[own_positions(torch.arange(size, device="cpu"), size, context)] = True
        losses = []
        cosines = []
        for positive in self.positives:
            valid = used[self.anchor] & used[positive] & is_own
            for a, b in ((self.anchor, positive), (positive, self.anchor)):
                counted = valid
                if self.decoupled:
                    counted = valid & self._has_negatives(used, b)
                cells = true_cells(counted, device)
                losses.append(self._direction(target[a], plain[b], masked[b], negatives, cells))
            cosine = (target[self.anchor] * plain[positive]).sum(dim=-1)
            cosines.append(cosine[true_cells(valid, device)])
        pairs = torch.cat(cosines).detach()
        sums = {"cos_positive": (pairs.sum(), len(pairs))}
        for view in self.negatives:
            both = true_cells(used[self.anchor] & used[view] & is_own, device)
            cosine = (target[self.anchor] * target[view]).detach().sum(dim=-1)[both]
            sums[f"cos_{view}"] = (cosine.sum(), len(cosine))
        total = torch.cat(losses).sum()
        value = global_mean(total, len(pairs), context)
        return LossOutput(value, mean_reports(sums, context))

    def _used_rows(self, present: Embeddings) -> dict[str, Tensor]:
        """Return the mask of the rows of each view that are used; none if they have no variance."""
        # One row has no variance; with `min_rows` above 2 its statistics are those of all views.
        too_few = 0 if self.min_rows > 2 else 1
        counts = {view: int(present[view].sum()) for view in self.views}
        enough = sum(count for count in counts.values() if count > too_few) >= 2
        used = {}
        for view, count in counts.items():
            used[view] = present[view] & (enough and count > too_few)
        return used

    def _has_negatives(self, used: dict[str, Tensor], opposite: str) -> Tensor:
        """Return the mask (B,) of the rows with a negative: mined, or a row of `opposite`.

        Without any, the published form has no denominator.
        """
        has_negative = used[opposite].sum() - used[opposite].long() > 0
        for view in self.negatives:
            has_negative = has_negative | used[view]
        return has_negative

    def _target(self, vectors: Tensor, valid: Tensor, all_vectors: Tensor) -> Tensor:
        """Return the unit vectors z of a view, (B, d), zero outside the rows numbered `valid`.

        The statistics are those of these rows, or of the vectors of all views if there are too few
        of them.
        """
        if self.normalize and len(valid):
            if len(valid) >= self.min_rows:
                rows = F.batch_norm(vectors[valid], None, None, training=True)
            else:
                variance, mean = torch.var_mean(all_vectors, dim=0, correction=0)
                rows = (vectors[valid] - mean) * (variance + _EPSILON).rsqrt()
            vectors = torch.zeros_like(vectors).index_put((valid,), rows)
        unit = F.normalize(vectors, dim=-1)
        return unit.detach() if self.stop_gradient else unit

    def _direction(
        self,
        a: Tensor,
        b: Tensor,
        others: tuple[Tensor, Tensor],
        negatives: Sequence[tuple[Tensor, Tensor]],
        rows: Tensor,
    ) -> Tensor:
        """Return D(a, b) of the rows with these numbers, (n,).

        `others` and `negatives` are vectors with their masks.
        """
        a = a[rows]
        other_vectors, other_present = others
        itself = rows[:, None] == torch.arange(len(other_vectors), device=rows.device)
        logits = a @ other_vectors.T / self.temperature
        blocks = [logits.masked_fill(itself | ~other_present, -math.inf)]
        for mined, mined_present in negatives:
            # A mined negative is contrasted with the anchor of its own row only.
            logits = (a * mined[rows]).sum(dim=-1, keepdim=True) / self.temperature
            blocks.append(logits.masked_fill(~mined_present[rows, None], -math.inf))
        positive = (a * b[rows]).sum(dim=-1, keepdim=True) / self.temperature
        if not self.decoupled:
            blocks.append(positive)
        log_denominator = torch.logsumexp(torch.cat(blocks, dim=1), dim=1)
        return log_denominator - positive.squeeze(1)
