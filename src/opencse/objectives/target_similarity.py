"""Regression of cosine similarities towards targets: the teacher's cosines, lowered by opposition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from opencse.objectives.host import move
from opencse.objectives.term import Context, Embeddings, Term


@dataclass(frozen=True, kw_only=True)
class TargetSimilarity(Term):
    r"""Squared error of cosine similarities against a target geometry.

    .. math:: \ell_{xy} = \bigl(\cos(s_x, s_y) - c + w (1 - p) \max(c, 0)^k\bigr)^2

    with s the student's embeddings, c the cosine similarity of the teacher's, and p in [-1, 1] the polarity of the
    pair: 1 for paraphrases, -1 for contradictions. Paraphrases keep their cosine, contradictions with cosine c lose
    2 w c^k, and unrelated pairs, for which c^k is small, nearly keep theirs whatever p is.

    The polarity is known for pairs that were constructed (`same`, `opposite`). For all others it is the cosine
    similarity of the polarity teacher's vectors; without such a teacher it is 1, and the teacher's cosines are kept as
    in similarity-preserving distillation (Tung and Mori, ICCV 2019). The loss is the mean over all pairs of the term.

    Attributes:
        same: Pairs of views of a row that are paraphrases.
        opposite: Pairs of views of a row that contradict each other.
        related: Pairs of views of a row with unknown polarity.
        across: Views whose embeddings are compared between all pairs of different rows.
        teacher: The encoder with the cosines c.
        polarity: The teacher whose cosines are the polarity; empty for none.
        strength: w, the strength of the decrease for contradictions.
        power: k, the exponent of the teacher's cosine.
    """

    kind: ClassVar[str] = "target_similarity"

    same: tuple[tuple[str, str], ...] = ()
    opposite: tuple[tuple[str, str], ...] = ()
    related: tuple[tuple[str, str], ...] = ()
    across: tuple[str, ...] = ()
    teacher: str = "teacher"
    polarity: str = ""
    strength: float = 0.4
    power: float = 3.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.views:
            raise ValueError("name at least one pair (same, opposite, related) or one view to compare across rows")
        if not 0 <= self.strength <= 1:
            raise ValueError("strength must lie between 0 and 1: an opposite's cosine cannot fall below -1")
        if self.power < 1:
            raise ValueError("power must be at least 1")

    @property
    def views(self) -> tuple[str, ...]:
        """All views in a pair, then those compared across rows."""
        pairs = (*self.same, *self.opposite, *self.related)
        return tuple(dict.fromkeys([*(view for pair in pairs for view in pair), *self.across]))

    @property
    def teachers(self) -> tuple[str, ...]:
        """The teacher of the cosines, and that of the polarity if there is one."""
        return (self.teacher, self.polarity) if self.polarity else (self.teacher,)

    def __call__(self, embeddings: Embeddings, present: Embeddings, context: Context) -> Tensor:
        """See the class; O(B d) for each pair of views, O(n² d) for the n embeddings compared across rows."""
        errors = [torch.cat([embeddings[view][:0].sum(dim=-1) for view in self.views])]
        groups = (("same", self.same, 1.0), ("opposite", self.opposite, -1.0), ("related", self.related, None))
        for name, pairs, known in groups:
            group_errors = [self._within(pair, known, embeddings, present, context) for pair in pairs]
            errors += group_errors
            if group_errors and len(group := torch.cat(group_errors)):
                context.report(f"{self.name}/{name}_rms", group.square().mean().sqrt())
        if self.across:
            errors.append(self._across(embeddings, present, context))
            if len(errors[-1]):
                context.report(f"{self.name}/across_rms", errors[-1].square().mean().sqrt())
        error = torch.cat(errors)
        if len(error) == 0:
            return torch.stack([embeddings[view].sum() for view in self.views]).sum() * 0
        return error.square().mean()

    def target(self, cosines: Tensor, polarity: Tensor | float) -> Tensor:
        """Return the target similarity of pairs with the teacher's cosines and a polarity, both of shape (n,)."""
        return cosines - self.strength * (1 - polarity) * cosines.clamp(min=0) ** self.power

    def _within(
        self, pair: tuple[str, str], known: float | None, embeddings: Embeddings, present: Embeddings, context: Context
    ) -> Tensor:
        """Return the errors (n,) of the rows that have both views."""
        first, second = pair
        both = context.rows(present, first, second)

        def cosines(vectors: Embeddings) -> Tensor:
            return F.cosine_similarity(vectors[first][both], vectors[second][both], dim=-1)

        student = cosines(embeddings)
        teacher = cosines(context.teachers[self.teacher]).to(student.dtype)
        polarity: Tensor | float = 1.0 if known is None else known
        if known is None and self.polarity:
            polarity = cosines(context.teachers[self.polarity]).to(student.dtype)
        return student - self.target(teacher, polarity)

    def _across(self, embeddings: Embeddings, present: Embeddings, context: Context) -> Tensor:
        """Return the errors (m,) of all unordered pairs of embeddings of different rows."""
        by_view = {view: context.host_rows(present, view) for view in self.across}
        rows = torch.cat(list(by_view.values()))
        device = embeddings[self.across[0]].device
        pairs = torch.triu(rows[:, None] != rows, diagonal=1).nonzero(as_tuple=True)
        first, second = (move(side, device) for side in pairs)
        kept = {view: move(rows, device) for view, rows in by_view.items()}

        def cosines(vectors: Embeddings) -> Tensor:
            unit = F.normalize(torch.cat([vectors[view][kept[view]] for view in self.across]), dim=-1)
            return (unit @ unit.T)[first, second]

        student = cosines(embeddings)
        teacher = cosines(context.teachers[self.teacher]).to(student.dtype)
        polarity: Tensor | float = 1.0
        if self.polarity:
            polarity = cosines(context.teachers[self.polarity]).to(student.dtype)
        return student - self.target(teacher, polarity)
