"""DebCSE's loss: predict the batch-normalised vector of one sentence from the plain vector of its positive."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from opencse.objectives.term import Context, Embeddings, Term

_EPSILON = 1e-5  # that of batch_norm


@dataclass(frozen=True, kw_only=True)
class AlternatingNormalization(Term):
    r"""Alternating normalisation with mined positives and negatives (DebCSE eq. 7-9).

    With h the vectors, z their batch normalisation, c the cosine and t the temperature, the loss of an anchor and one
    of its positives is D(z, h⁺) + D(z⁺, h), where for a row i

    .. math:: D(a, b)_i = -\log \frac{e^{c(a_i, b_i)/t}}
              {e^{c(a_i, b_i)/t} + \sum_k e^{c(a_i, z^-_{i,k})/t} + \sum_{j \ne i} e^{c(a_i, z_j)/t}}

    and z_j are the normalised vectors of the other rows in the role opposite to a. It is averaged over all pairs of an
    anchor and a positive of its own. What a row lacks is left out of every sum and of the statistics.

    The paper's denominators lack the first summand. That form (`decoupled`) is not bounded from below: it can always be
    lowered by making all negatives less similar. The two are tied by L = softplus(L_decoupled).

    Attributes:
        anchor: View of the rows.
        positives: Views with a positive each.
        negatives: Views with a mined negative each.
        temperature: t.
        decoupled: Leave the positive out of the denominator, as published.
        negative_scope: Whether a row meets the mined negatives of its `own` row or of `all` rows.
        normalize: Batch-normalise z; without it both towers are the plain vectors (the paper's ablation).
        stop_gradient: Let no gradient flow through z.
        min_rows: A view that fewer rows of the batch have is normalised by the statistics of all views together: over
            two rows of its own, z would be ±1 in every feature. 2 for a view's own statistics always, as published.
    """

    kind: ClassVar[str] = "alternating_normalization"

    anchor: str = "anchor"
    positives: tuple[str, ...]
    negatives: tuple[str, ...] = ()
    temperature: float = 0.05
    decoupled: bool = False
    negative_scope: Literal["own", "all"] = "own"
    normalize: bool = True
    stop_gradient: bool = False
    min_rows: int = 32

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.temperature <= 0:
            raise ValueError("temperature must be positive")
        if self.min_rows < 2:
            raise ValueError("min_rows must be at least 2: one row has no spread")
        if not self.positives:
            raise ValueError("at least one view of positives is needed")

    @property
    def views(self) -> tuple[str, ...]:
        """Anchor, positives, negatives."""
        return (self.anchor, *self.positives, *self.negatives)

    def __call__(self, embeddings: Embeddings, present: Embeddings, context: Context) -> Tensor:
        """See the class; cost is O(m B² d) time for m positives."""
        plain = {view: F.normalize(embeddings[view], dim=-1) for view in self.views}
        least = 0 if self.min_rows > 2 else 1  # one row has no spread of its own
        known = {view: present[view] & (present[view].sum() > least) for view in self.views}
        every = torch.cat([embeddings[view][known[view]] for view in self.views])
        if len(every) < 2:
            known = {view: torch.zeros_like(known[view]) for view in self.views}
        target = {view: self._target(embeddings[view], known[view], every) for view in self.views}
        negatives = [(target[view], known[view]) for view in self.negatives]
        losses, cosines = [], []
        for positive in self.positives:
            here = known[self.anchor] & known[positive]
            for a, b in ((self.anchor, positive), (positive, self.anchor)):
                losses.append(self._direction(target[a], plain[b], (target[b], known[b]), negatives, here))
            cosines.append((target[self.anchor] * plain[positive]).sum(dim=-1)[here])
        pairs = torch.cat(cosines)
        if pairs.numel() == 0:
            return torch.stack([embeddings[view].sum() for view in self.views]).sum() * 0
        with torch.no_grad():
            context.report(f"{self.name}/cos_positive", pairs.mean())
            for view, (mined, there) in zip(self.negatives, negatives, strict=True):
                own = (target[self.anchor] * mined).sum(dim=-1)[known[self.anchor] & there]
                context.report(f"{self.name}/cos_{view}", own.sum() / max(len(own), 1))
        return torch.cat(losses).sum() / pairs.numel()

    def _target(self, vectors: Tensor, here: Tensor, every: Tensor) -> Tensor:
        """Return the unit vectors z of a view, (B, d), zero but in the rows `here`.

        Statistics are those of these rows, or of `every` vector of any view where they are few.
        """
        if self.normalize and here.any():
            if here.sum() >= self.min_rows:
                rows = F.batch_norm(vectors[here], None, None, training=True)
            else:
                variance, mean = torch.var_mean(every, dim=0, correction=0)
                rows = (vectors[here] - mean) * (variance + _EPSILON).rsqrt()
            vectors = torch.zeros_like(vectors).index_put((here.nonzero().squeeze(1),), rows)
        unit = F.normalize(vectors, dim=-1)
        return unit.detach() if self.stop_gradient else unit

    def _direction(
        self,
        a: Tensor,
        b: Tensor,
        others: tuple[Tensor, Tensor],
        negatives: Sequence[tuple[Tensor, Tensor]],
        here: Tensor,
    ) -> Tensor:
        """D(a, b) of the rows `here`."""
        own = torch.eye(len(here), dtype=torch.bool, device=a.device)
        blocks = [_logits(a, others[0], others[1] & ~own, self.temperature)]
        for mined, there in negatives:
            allowed = own & there if self.negative_scope == "own" else there.expand_as(own)
            blocks.append(_logits(a, mined, allowed, self.temperature))
        positive = (a * b).sum(dim=-1, keepdim=True) / self.temperature
        if not self.decoupled:
            blocks.append(positive)
        denominators = torch.cat(blocks, dim=1)[here]
        if self.decoupled:  # a row without any negative has no denominator
            some = denominators.isfinite().any(dim=1)
            return torch.logsumexp(denominators[some], dim=1) - positive[here][some].squeeze(1)
        return torch.logsumexp(denominators, dim=1) - positive[here].squeeze(1)


def _logits(a: Tensor, candidates: Tensor, allowed: Tensor, temperature: float) -> Tensor:
    return (a @ candidates.T / temperature).masked_fill(~allowed, -math.inf)
