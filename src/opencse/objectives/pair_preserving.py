"""Keep the cosine similarity of given pairs close to the teacher's, optionally corrected for word overlap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from opencse.objectives.term import Context, Embeddings, Term, TermBuildContext

BUCKETS = 2**15
"""Number of columns in a bag of word pieces; pieces of a larger vocabulary share columns."""


@dataclass(frozen=True, kw_only=True)
class PairPreserving(Term):
    r"""Keep cosines between views of a row, such as those of a sentence and of its negation with a related sentence.

    .. math:: L = \operatorname{mean} (s_a \cdot s_b - t_a \cdot t_b + \beta\, o_{ab})^2

    over all present pairs, with s and t the unit vectors of student and teacher. Random pairs of a
    batch are nearly always unrelated, so pairs of related sentences are needed to keep medium cosines.

    o is the word overlap 2 |A ∩ B| / (|A| + |B|) of the sets of word pieces of both sentences (Dice coefficient). With
    β > 0, the target is lower for pairs with more overlap.

    Attributes:
        pairs: Pairs of views.
        teacher: The teacher with the target cosines.
        less_overlap: β, the weight of the word overlap.
    """

    kind: ClassVar[str] = "pair_preserving"

    pairs: tuple[tuple[str, str], ...]
    teacher: str = "teacher"
    less_overlap: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.pairs:
            raise ValueError("pairs must name at least one pair of views")
        if not 0 <= self.less_overlap <= 1:
            raise ValueError("less_overlap must lie between 0 and 1")

    @property
    def views(self) -> tuple[str, ...]:
        """All views in a pair."""
        return tuple(dict.fromkeys(view for pair in self.pairs for view in pair))

    @property
    def teachers(self) -> tuple[str, ...]:
        """The teacher."""
        return (self.teacher,)

    @property
    def tokens(self) -> tuple[str, ...]:
        """The views whose word overlap is computed."""
        return self.views if self.less_overlap else ()

    def module(self, build: TermBuildContext) -> nn.Module | None:
        """Return the bag of word pieces; None without a correction for overlap."""
        return _BagOfWordPieces(build.tokenizer.all_special_ids) if self.less_overlap else None

    def __call__(self, embeddings: Embeddings, present: Embeddings, context: Context) -> Tensor:
        """See the class; cost is O(B d) for each pair."""
        teacher = context.teachers[self.teacher]
        dtype = embeddings[self.views[0]].dtype
        overlaps = self._overlaps(context, dtype) if self.less_overlap else {}
        errors = []
        for first, second in self.pairs:
            both = context.rows(present, first, second)
            cosines = F.cosine_similarity(embeddings[first][both], embeddings[second][both], dim=-1)
            error = cosines - F.cosine_similarity(teacher[first][both], teacher[second][both], dim=-1).to(cosines.dtype)
            if overlaps:
                error = error + self.less_overlap * overlaps[first, second][both]
            errors.append(error)
        error = torch.cat(errors)
        if len(error) == 0:
            return torch.stack([embeddings[view].sum() for view in self.views]).sum() * 0
        mean = error.square().mean()
        context.report(f"{self.name}/rms", mean.sqrt())
        return mean

    @torch.no_grad()
    def _overlaps(self, context: Context, dtype: torch.dtype) -> dict[tuple[str, str], Tensor]:
        """Return the word overlap of each pair, (B,), over the global batch."""
        bag, gather = context.modules[self.name], context.processes.gather
        bags = {view: bag(*context.tokens[view]).to(dtype) for view in self.views}
        overlaps = {}
        for first, second in self.pairs:
            a, b = bags[first], bags[second]
            size = (a.sum(dim=1) + b.sum(dim=1)).clamp(min=1)
            overlaps[first, second] = gather(2 * (a * b).sum(dim=1) / size)
        return overlaps


class _BagOfWordPieces(nn.Module):
    """Map from token ids and mask, (b, L), to the set of word pieces of each row as zeros and ones, (b, BUCKETS)."""

    special: Tensor

    def __init__(self, special: list[int]) -> None:
        super().__init__()
        self.register_buffer("special", torch.tensor(sorted(special)), persistent=False)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        counts = mask.bool() & ~torch.isin(ids, self.special)
        bags = torch.zeros(len(ids), BUCKETS, device=ids.device)
        return bags.scatter_reduce_(1, ids % BUCKETS, counts.to(bags.dtype), "amax")
