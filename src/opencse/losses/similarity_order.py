"""Rank paraphrase pairs above contradiction pairs of the same row, by a margin."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import product
from typing import ClassVar

import torch
import torch.nn.functional as F

from opencse.losses.term import Context, Embeddings, LossOutput, Term


@dataclass(frozen=True, kw_only=True)
class SimilarityOrder(Term):
    r"""Hinge loss that ranks each closer pair of views above each farther pair of the same row, by a margin.

    .. math:: L = \operatorname{mean} \max(\alpha - c(\text{closer}) + c(\text{farther}), 0)

    over all present closer and farther pairs, with c the cosine. With one pair each and a common view it is the lower
    half of `two_way_margin`; here the pairs need no common view ("not safe" and "dangerous" are nearer than "safe" and
    "dangerous").

    Attributes:
        closer: Pairs of views with the same meaning.
        farther: Pairs of views with different meanings.
        margin: α, in cosine units.
    """

    kind: ClassVar[str] = "similarity_order"
    view_fields: ClassVar[tuple[str, ...]] = ("closer", "farther")

    closer: tuple[tuple[str, str], ...]
    farther: tuple[tuple[str, str], ...]
    margin: float

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.closer or not self.farther:
            raise ValueError("closer and farther must name at least one pair of views each")
        if not 0 <= self.margin <= 2:
            raise ValueError("margin must be between 0 and 2: it is a difference of cosines")

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; cost is O(B d) for each pair, and O(B) for each closer and farther one."""
        pairs = dict.fromkeys([*self.closer, *self.farther])  # a fixed order, in which gradients are summed
        cosines = {(a, b): F.cosine_similarity(embeddings[a], embeddings[b], dim=-1) for a, b in pairs}
        gaps = []
        for near, far in product(self.closer, self.farther):
            gaps.append((cosines[near] - cosines[far])[context.rows(present, *near, *far)])
        gap = torch.cat(gaps)
        if len(gap) == 0:
            return self.zero(embeddings)
        reports = {"gap": gap.detach().mean(), "right": (gap > 0).to(gap.dtype).mean()}
        return LossOutput(F.relu(self.margin - gap).mean(), reports)
