"""Similarity-preserving distillation: the cosines between sentences stay as a teacher has them.

With the untouched model as the teacher, the term preserves whatever the other terms have no reason to change.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from opencse.foundation.tensors import move
from opencse.losses.term import Context, Embeddings, LossOutput, Term


@dataclass(frozen=True, kw_only=True)
class SimilarityPreserving(Term):
    r"""Keep the cosines between sentences of different rows: the mean of :math:`(s_i \cdot s_j - t_i \cdot t_j)^2`.

    The mean runs over all ordered pairs of vectors of different rows of the batch; the cosines within a row are left to
    other terms. Source: similarity-preserving distillation (Tung and Mori, ICCV 2019), on
    cosines. The teacher may have any dimension.

    Attributes:
        keep: Views whose cosines are kept.
        teacher: The teacher with the target vectors.
    """

    kind: ClassVar[str] = "similarity_preserving"
    view_fields: ClassVar[tuple[str, ...]] = ("keep",)

    keep: tuple[str, ...] = ("anchor",)
    teacher: str = "teacher"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.keep:
            raise ValueError("keep must name at least one view")

    @property
    def teachers(self) -> tuple[str, ...]:
        """The teacher."""
        return (self.teacher,)

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; cost is O(n² d) for the n vectors of the kept views."""
        student, teacher = self._unit_vectors(embeddings, present, context)
        rows = torch.cat([context.host_rows(present, view) for view in self.views])
        kept = rows[:, None] != rows
        count = int(kept.sum())
        if count == 0:
            return LossOutput(student.sum() * 0)
        kept = move(kept, student.device)
        error = student @ student.T - teacher @ teacher.T
        mean = error.square().masked_fill(~kept, 0).sum() / count
        return LossOutput(mean, {"rms": mean.detach().sqrt()})

    def _unit_vectors(self, embeddings: Embeddings, present: Embeddings, context: Context) -> tuple[Tensor, Tensor]:
        """Return the unit vectors (n, d) and (n, d_t) of student and teacher for the present rows of all views."""
        teacher = context.teachers[self.teacher]
        rows = {view: context.rows(present, view) for view in self.views}
        student = torch.cat([embeddings[view][rows[view]] for view in self.views])
        target = torch.cat([teacher[view][rows[view]] for view in self.views]).to(student.dtype)
        return F.normalize(student, dim=-1), F.normalize(target, dim=-1)
