"""What a teacher knows is kept: its vectors, or the cosines between its vectors.

With the untouched model as the teacher these terms hold in place whatever the other terms have no reason to move.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from opencse.objectives.term import Context, Embeddings, Facts, Term

BUCKETS = 2**15
"""Columns of a bag of word pieces; a larger vocabulary shares them."""


@dataclass(frozen=True, kw_only=True)
class _Preservation(Term):
    """What both kinds share: the views that are kept, and the teacher.

    Attributes:
        keep: The views.
        teacher: Whose vectors of them are kept.
    """

    keep: tuple[str, ...] = ("anchor",)
    teacher: str = "teacher"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.keep:
            raise ValueError("keep must name at least one view")

    @property
    def views(self) -> tuple[str, ...]:
        """Those that are kept."""
        return self.keep

    @property
    def teachers(self) -> tuple[str, ...]:
        """The one teacher."""
        return (self.teacher,)

    def _vectors(self, embeddings: Embeddings, present: Embeddings, context: Context) -> tuple[Tensor, Tensor]:
        """Unit vectors of student and teacher, (n, d) and (n, d_t), all views' present rows one after another."""
        teacher = context.teachers[self.teacher]
        student = torch.cat([embeddings[view][present[view]] for view in self.views])
        known = torch.cat([teacher[view][present[view]] for view in self.views]).to(student.dtype)
        return F.normalize(student, dim=-1), F.normalize(known, dim=-1)


@dataclass(frozen=True, kw_only=True)
class EmbeddingDistillation(_Preservation):
    r"""Stay near the teacher's own vectors: the mean of :math:`1 - \cos(s_i, t_i)`.

    Student and teacher must be equally wide. Source: distillation of sentence embeddings by regression (Reimers and
    Gurevych, EMNLP 2020), with the cosine in place of the squared error, because cosines are what is compared later.
    """

    kind: ClassVar[str] = "embedding_distillation"

    def __call__(self, embeddings: Embeddings, present: Embeddings, context: Context) -> Tensor:
        """See the class; cost is O(B d)."""
        student, teacher = self._vectors(embeddings, present, context)
        if student.shape[1] != teacher.shape[1]:
            raise ValueError(
                f"{self.name}: the teacher's vectors have {teacher.shape[1]} dimensions, the student's "
                f"{student.shape[1]}; `similarity_preserving` compares cosines only"
            )
        if len(student) == 0:
            return student.sum()
        return (1 - (student * teacher).sum(dim=-1)).mean()


@dataclass(frozen=True, kw_only=True)
class SimilarityPreserving(_Preservation):
    r"""Keep the cosines between different sentences, or all of them but what they owe to words in common.

    .. math:: L = \operatorname{mean} (s_i \cdot s_j - t_i \cdot t_j + \beta\, o_{ij})^2

    The mean runs over all ordered pairs of different vectors of the batch. Source: similarity-preserving distillation
    (Tung and Mori, ICCV 2019), on cosines. The teacher may have any width.

    o is the wording in common, 2 |A ∩ B| / (|A| + |B|) of the sets of word pieces of both sentences. With β above 0 the
    term takes back what the teacher credits to it.

    Attributes:
        less_overlap: β.
        within_rows: Only the cosines between the views of one row, such as a sentence and its nearest neighbours: among
            all pairs of a batch, nearly all of which are unrelated, they would count for nothing.
        across: Further views, of which only the cosines to other rows are kept: how near a negation is to its own
            sentence is for other terms to say, but two sentences do not come nearer because both are negated.
    """

    kind: ClassVar[str] = "similarity_preserving"

    less_overlap: float = 0.0
    within_rows: bool = False
    across: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.less_overlap <= 1:
            raise ValueError("less_overlap must lie between 0 and 1")
        if self.within_rows and (self.across or len(self.keep) < 2):
            raise ValueError("within_rows needs two views in keep, and none in across")

    @property
    def views(self) -> tuple[str, ...]:
        """Those that are kept, within rows or across them."""
        return tuple(dict.fromkeys((*self.keep, *self.across)))

    @property
    def tokens(self) -> tuple[str, ...]:
        """The views whose wording counts."""
        return self.views if self.less_overlap else ()

    def module(self, facts: Facts) -> nn.Module | None:
        """Which tokens are special and do not count as wording."""
        return _Bag(facts.tokenizer.all_special_ids) if self.less_overlap else None

    def __call__(self, embeddings: Embeddings, present: Embeddings, context: Context) -> Tensor:
        """See the class; cost is O(n² d) for the n vectors of the kept views."""
        student, teacher = self._vectors(embeddings, present, context)
        row = torch.cat([present[view].nonzero()[:, 0] for view in self.views])
        within = torch.cat([present[view][present[view]] & (view in self.keep) for view in self.views])
        same_row = row[:, None] == row
        kept = same_row if self.within_rows else ~same_row | (within[:, None] & within)
        kept.fill_diagonal_(False)
        count = kept.sum()
        if count == 0:
            return student.sum() * 0
        error = student @ student.T - teacher @ teacher.T
        if self.less_overlap:
            error = error + self.less_overlap * self._overlap(present, context, error.dtype)
        mean = error.square().masked_fill(~kept, 0).sum() / count
        context.report(f"{self.name}/rms", mean.sqrt())
        return mean

    @torch.no_grad()
    def _overlap(self, present: Embeddings, context: Context, dtype: torch.dtype) -> Tensor:
        """The wording in common of each two of the kept vectors, (n, n)."""
        bag, gather = context.modules[self.name], context.processes.gather
        bags = torch.cat([gather(bag(*context.tokens[view]))[present[view]] for view in self.views])
        common, size = (bags @ bags.T).to(dtype), bags.sum(dim=1)
        return 2 * common / (size[:, None] + size).clamp(min=1)


class _Bag(nn.Module):
    """From token ids and their mask, (b, L), to the set of word pieces of each row as zeros and ones, (b, BUCKETS)."""

    def __init__(self, special: list[int]) -> None:
        super().__init__()
        self.register_buffer("special", torch.tensor(sorted(special)), persistent=False)

    def forward(self, ids: Tensor, mask: Tensor) -> Tensor:
        counts = mask.bool() & ~torch.isin(ids, self.special)
        bags = torch.zeros(len(ids), BUCKETS, device=ids.device)
        return bags.scatter_reduce_(1, ids % BUCKETS, counts.to(bags.dtype), "amax")
