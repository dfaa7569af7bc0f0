"""Base class of ListNet and ListMLE: a student's and its teachers' lists of similarities."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from opencse.objectives.teacher_weights import LearnedWeights, Policy, PolicyWeights, TeacherWeights
from opencse.objectives.term import Context, Embeddings, Term, TermBuildContext


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


@dataclass(frozen=True)
class TeacherLists:
    """One list per anchor, and of each teacher one.

    Attributes:
        student: (n, c) cosines over the student's temperature.
        teachers: (K, n, c) cosines of each teacher over theirs.
        kept: (n, c), whether the candidate is in the anchor's list.
    """

    student: Tensor
    teachers: Tensor
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
        weighting: Whether w is `fixed`; `learned`, inverse to the loss against each teacher alone; or drawn by
            RLRD's policy (`rlrd`), which is rewarded for a low loss.
        policy: Settings of the latter.
        weights_from: Name of an earlier term with the same teachers whose w this one takes; its own where empty.
        temperature: t, of the student.
        teacher_temperature: t', of the teachers; t where absent.
        exclude_self: Leave each anchor's own candidate out of its list.
    """

    anchor: str = "anchor"
    candidates: str = "twin"
    teachers: tuple[str, ...] = ("a",)
    teacher_weights: tuple[float, ...] = ()
    weighting: Literal["fixed", "learned", "rlrd"] = "fixed"
    policy: Policy = field(default_factory=Policy)
    weights_from: str = ""
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
        if self.weights_from and (self.teacher_weights or self.weighting != "fixed"):
            raise ValueError("weights_from takes another term's weights: leave out teacher_weights and weighting")
        if self.weighting != "fixed" and (self.teacher_weights or len(self.teachers) < 2):
            raise ValueError(f"weighting '{self.weighting}' is for several teachers without teacher_weights")

    @property
    def views(self) -> tuple[str, ...]:
        """Anchor and candidates."""
        return (self.anchor, self.candidates)

    def module(self, build: TermBuildContext) -> nn.Module | None:
        """Return the module that weighs the teachers; None if the weights are fixed."""
        if self.weighting == "learned":
            return LearnedWeights(len(self.teachers))
        return PolicyWeights(len(self.teachers), self.policy, build.seed) if self.weighting == "rlrd" else None

    def list_loss(self, lists: Lists) -> Tensor:
        """Return the loss of some lists."""
        raise NotImplementedError

    def __call__(self, embeddings: Embeddings, present: Embeddings, context: Context) -> Tensor:
        """See the class; O(B² d) time and O(B²) memory for each teacher."""
        found = self.lists(embeddings, present, context)
        module = context.modules.get(self.name)
        assert module is None or isinstance(module, TeacherWeights)
        if found is None:
            nothing = (embeddings[self.anchor].sum() + embeddings[self.candidates].sum()) * 0
            return nothing if module is None else nothing + module.nothing().to(nothing.dtype)
        lists = [Lists(found.student, teacher, found.kept) for teacher in found.teachers]
        if self.weights_from and self.weights_from in context.teacher_weights:
            weights = context.teacher_weights[self.weights_from].to(found.student)
        elif module is None:
            fixed = self.teacher_weights or (1.0,) * len(self.teachers)
            weights = found.student.new_tensor([w / sum(fixed) for w in fixed])
        else:
            with torch.no_grad():
                losses = torch.stack([self.list_loss(each) for each in lists])
                relative = losses / losses.mean().clamp(min=1e-12)
                features = torch.stack([relative, torch.stack([_correlation(each) for each in lists])], dim=1)
            weights = module.choose(features).to(found.student.dtype)
            for name, weight in zip(self.teachers, weights, strict=True):
                context.report(f"{self.name}/weight_{name}", weight)
        context.teacher_weights[self.name] = weights.detach()
        mixed = Lists(found.student, torch.einsum("k,kij->ij", weights, found.teachers), found.kept)
        context.report(f"{self.name}/correlation", _correlation(mixed))
        loss = self.list_loss(mixed)
        if module is None:
            return loss
        own = module.learn(loss).to(loss.dtype)
        return loss + (own - own.detach())  # it moves the weights, but is not part of the loss

    def lists(self, embeddings: Embeddings, present: Embeddings, context: Context) -> TeacherLists | None:
        """Return the lists of all anchors; None where no anchor has any candidate."""
        rows, columns = present[self.anchor].nonzero().squeeze(1), present[self.candidates].nonzero().squeeze(1)
        kept = rows[:, None] != columns[None] if self.exclude_self else rows.new_ones(len(rows), len(columns)) > 0
        if not kept.any():
            return None
        some = kept.any(dim=1)
        rows, kept = rows[some], kept[some]
        student = _cosines(embeddings, self.views, rows, columns)
        each = [_cosines(context.teachers[t], self.views, rows, columns).to(student.dtype) for t in self.teachers]
        teachers = torch.stack(each).detach() / (self.teacher_temperature or self.temperature)
        return TeacherLists(student / self.temperature, teachers, kept)


@torch.no_grad()
def _correlation(lists: Lists) -> Tensor:
    """Return the mean over the lists of the correlation of student and teacher."""
    mine, theirs = (_centred(x, lists.kept) for x in (lists.student, lists.teacher))
    return F.cosine_similarity(mine, theirs, dim=1).mean()


def _cosines(vectors: Embeddings, views: tuple[str, ...], rows: Tensor, columns: Tensor) -> Tensor:
    a, b = vectors[views[0]][rows], vectors[views[1]][columns]
    return F.normalize(a, dim=-1) @ F.normalize(b, dim=-1).T


def _centred(lists: Tensor, kept: Tensor) -> Tensor:
    """Return each list minus its mean, 0 where nothing is kept: cosines of these are Pearson correlations."""
    means = (lists * kept).sum(dim=1, keepdim=True) / kept.sum(dim=1, keepdim=True)
    return (lists - means) * kept
