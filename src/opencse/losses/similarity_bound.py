"""A lower or an upper bound on the cosines of pairs whose relation is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F

from opencse.losses.term import Context, Embeddings, LossOutput, Term


@dataclass(frozen=True, kw_only=True)
class SimilarityBound(Term):
    r"""Keep the cosine of paraphrases above a bound, or that of contradictions below one (hinge loss).

    .. math:: L = \operatorname{mean} \max(b - c, 0) \quad\text{or}\quad \operatorname{mean} \max(c - b, 0)

    over all present pairs, with b the bound and c the cosine. Unlike a contrastive loss, it leaves pairs that
    keep the bound alone, and does not compare rows.

    Attributes:
        pairs: Pairs of views.
        at_least: Lower bound.
        at_most: Upper bound; give exactly one of both.
    """

    kind: ClassVar[str] = "similarity_bound"
    view_fields: ClassVar[tuple[str, ...]] = ("pairs",)

    pairs: tuple[tuple[str, str], ...]
    at_least: float | None = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.pairs:
            raise ValueError("pairs must name at least one pair of views")
        if (self.at_least is None) == (self.at_most is None):
            raise ValueError("give either at_least or at_most")
        if not -1 <= self._bound <= 1:
            raise ValueError("a cosine lies between -1 and 1")

    @property
    def _bound(self) -> float:
        bound = self.at_most if self.at_least is None else self.at_least
        assert bound is not None
        return bound

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; cost is O(B d) for each pair."""
        by_pair, reports = [], {}
        for first, second in self.pairs:
            both = context.rows(present, first, second)
            cosines = F.cosine_similarity(embeddings[first][both], embeddings[second][both], dim=-1)
            by_pair.append(cosines)
            if len(cosines):
                reports[f"cos_{first}_{second}"] = cosines.detach().mean()
        cosines = torch.cat(by_pair)
        if len(cosines) == 0:
            return self.zero(embeddings)
        beyond = self._bound - cosines if self.at_least is not None else cosines - self._bound
        reports["inside"] = (beyond <= 0).to(cosines.dtype).mean()
        return LossOutput(F.relu(beyond).mean(), reports)
