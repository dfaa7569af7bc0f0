"""What ListNet and ListMLE have in common: a student's and its teachers' lists of similarities."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from opencse.objectives.term import Context, Embeddings, Term


@dataclass(frozen=True)
class Lists:
    """One list per anchor.

    Attributes:
        student: (n, c) cosines over the student's temperature.
        teacher: (n, c) mixed cosines of the teachers over theirs.
        kept: (n, c), whether the candidate is in the anchor's list.
    """

    student: Tensor
    teacher: Tensor
    kept: Tensor


@dataclass(frozen=True, kw_only=True)
class Distillation(Term):
    """Rank the candidates of each anchor as one or several frozen teachers do.

    Each anchor that is present has a list of the present candidates of the whole batch. With several teachers the list
    is Σ_k w_k c_k(a_i, p_j) / t' (RankCSE eq. 9).

    Attributes:
        anchor: View of the rows.
        candidates: View that is ranked.
        teachers: Their names.
        teacher_weights: w, one for each teacher, scaled to the sum 1; equal where empty.
        temperature: t, of the student.
        teacher_temperature: t', of the teachers; t where absent.
        exclude_self: Leave each anchor's own candidate out of its list.
    """

    anchor: str = "anchor"
    candidates: str = "twin"
    teachers: tuple[str, ...] = ("a",)
    teacher_weights: tuple[float, ...] = ()
    temperature: float = 0.05
    teacher_temperature: float | None = None
    exclude_self: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.temperature <= 0 or (self.teacher_temperature is not None and self.teacher_temperature <= 0):
            raise ValueError("temperatures must be positive")
        if not self.teachers:
            raise ValueError("at least one teacher is needed")
        if self.teacher_weights and len(self.teacher_weights) != len(self.teachers):
            raise ValueError(f"{len(self.teachers)} teachers, but {len(self.teacher_weights)} teacher_weights")
        if self.teacher_weights and (min(self.teacher_weights) < 0 or sum(self.teacher_weights) <= 0):
            raise ValueError("teacher_weights must not be negative, nor all zero")

    @property
    def views(self) -> tuple[str, ...]:
        """Anchor and candidates."""
        return (self.anchor, self.candidates)

    def weights(self, like: Tensor, context: Context) -> Tensor:
        """The teachers' weights, (K,); a subclass may take them from elsewhere."""
        fixed = self.teacher_weights or (1.0,) * len(self.teachers)
        return torch.tensor([w / sum(fixed) for w in fixed], dtype=like.dtype, device=like.device)

    def lists(self, embeddings: Embeddings, present: Embeddings, context: Context) -> Lists | None:
        """The lists of all anchors; None where no anchor has any candidate."""
        rows, columns = present[self.anchor].nonzero().squeeze(1), present[self.candidates].nonzero().squeeze(1)
        kept = rows[:, None] != columns[None] if self.exclude_self else rows.new_ones(len(rows), len(columns)) > 0
        if not kept.any():
            return None
        some = kept.any(dim=1)
        rows, kept = rows[some], kept[some]
        student = _cosines(embeddings, self.views, rows, columns)
        each = [_cosines(context.teachers[t], self.views, rows, columns).to(student.dtype) for t in self.teachers]
        weights = self.weights(student, context)
        teacher = torch.einsum("k,kij->ij", weights, torch.stack(each)).detach()
        with torch.no_grad():
            mine, theirs = (_centred(x, kept) for x in (student, teacher))
            context.report(f"{self.name}/correlation", F.cosine_similarity(mine, theirs, dim=1).mean())
        return Lists(student / self.temperature, teacher / (self.teacher_temperature or self.temperature), kept)


def _cosines(vectors: Embeddings, views: tuple[str, ...], rows: Tensor, columns: Tensor) -> Tensor:
    a, b = vectors[views[0]][rows], vectors[views[1]][columns]
    return F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T


def _centred(lists: Tensor, kept: Tensor) -> Tensor:
    """Each list minus its mean, 0 where nothing is kept: cosines of these are Pearson correlations."""
    means = (lists * kept).sum(dim=1, keepdim=True) / kept.sum(dim=1, keepdim=True)
    return (lists - means) * kept
