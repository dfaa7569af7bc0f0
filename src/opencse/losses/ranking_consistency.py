"""RankCSE's ranking consistency: both views of a sentence should rank the batch alike."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from opencse.losses.term import Context, Embeddings, LossOutput, Term

_CODE_FLOOR = 1e-7


@dataclass(frozen=True, kw_only=True)
class RankingConsistencyLoss(Term):
    r"""Jensen-Shannon divergence between the two top-1 distributions of a sentence's views (RankCSE eq. 5-6).

    With p_i = softmax_j c(a_i, p_j)/t and q_i = softmax_j c(p_i, a_j)/t over the rows that have both views,

    .. math:: L = \frac 1n \sum_i \tfrac12 KL(p_i \| m_i) + \tfrac12 KL(q_i \| m_i), \quad m_i = (p_i + q_i)/2

    which is symmetric, at most log 2, and zero for equal lists. The public code of RankCSE clamps log m from *below* at
    1e-7, so that the mixture vanishes and -(H(p) + H(q))/2 remains: it maximises the entropy of both lists, whether
    they agree or not. That form is available as `entropy`.

    Attributes:
        anchor: One view.
        positive: The other view of the same sentences.
        temperature: t.
        form: `jensen_shannon`, or `entropy` for the form of the public code.

    Example:
        >>> anchor = torch.eye(3)
        >>> loss = RankingConsistencyLoss(temperature=0.5)
        >>> f"{loss(anchor, anchor).value:.3f}, {loss(anchor, anchor.roll(1, 0)).value:.3f}"
        '0.000, 0.293'
    """

    kind: ClassVar[str] = "ranking_consistency"
    view_fields: ClassVar[tuple[str, ...]] = ("anchor", "positive")

    anchor: str = "anchor"
    positive: str = "twin"
    temperature: float = 0.05
    form: Literal["jensen_shannon", "entropy"] = "jensen_shannon"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.temperature <= 0:
            raise ValueError("temperature must be positive")

    def warnings(self) -> list[str]:
        """Warn that the form of the public code does not make the lists agree."""
        if self.form == "entropy":
            return ["the form 'entropy' maximises the entropy of the lists; it does not make them agree"]
        return []

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; needs O(B² d) time and O(B²) memory."""
        rows = context.rows(present, self.anchor, self.positive)
        if not len(rows):
            return self.zero(embeddings)
        a, b = (F.normalize(embeddings[view][rows], dim=-1) for view in self.views)
        scores = a @ b.T / self.temperature
        log_p, log_q = F.log_softmax(scores, dim=1), F.log_softmax(scores.T, dim=1)
        if self.form == "entropy":
            return LossOutput((_negative_entropy(log_p) + _negative_entropy(log_q)) / 2)
        log_m = torch.logaddexp(log_p, log_q) - math.log(2)
        divergence = (log_p.exp() * (log_p - log_m) + log_q.exp() * (log_q - log_m)).sum(dim=1) / 2
        agree = log_p.argmax(dim=1) == log_q.argmax(dim=1)
        return LossOutput(divergence.mean(), {"same_first": agree.to(scores.dtype).mean()})


def _negative_entropy(log_probabilities: Tensor) -> Tensor:
    """Return the mean of Σ p (log p - 1e-7), with p clamped at 1e-7, as in the public code."""
    p = log_probabilities.exp().clamp(min=_CODE_FLOOR)
    return (p * (p.log() - _CODE_FLOOR)).sum(dim=1).mean()
