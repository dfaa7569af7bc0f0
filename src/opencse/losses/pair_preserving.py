"""Keep the cosine similarity of given pairs close to the teacher's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F

from opencse.losses.term import Context, Embeddings, LossOutput, Term


@dataclass(frozen=True, kw_only=True)
class PairPreserving(Term):
    r"""Keep cosines between views of a row, such as those of a sentence and of its negation with a related sentence.

    .. math:: L = \operatorname{mean} (s_a \cdot s_b - t_a \cdot t_b)^2

    over all present pairs, with s and t the unit vectors of student and teacher. Random pairs of a
    batch are nearly always unrelated, so pairs of related sentences are needed to keep medium cosines.

    Attributes:
        pairs: Pairs of views.
        teacher: The teacher with the target cosines.
    """

    kind: ClassVar[str] = "pair_preserving"
    view_fields: ClassVar[tuple[str, ...]] = ("pairs",)

    pairs: tuple[tuple[str, str], ...]
    teacher: str = "teacher"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.pairs:
            raise ValueError("pairs must name at least one pair of views")

    @property
    def teachers(self) -> tuple[str, ...]:
        """The teacher."""
        return (self.teacher,)

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; cost is O(B d) for each pair."""
        teacher = context.teachers[self.teacher]
        errors = []
        for first, second in self.pairs:
            both = context.rows(present, first, second)
            cosines = F.cosine_similarity(embeddings[first][both], embeddings[second][both], dim=-1)
            target = F.cosine_similarity(teacher[first][both], teacher[second][both], dim=-1)
            errors.append(cosines - target.to(cosines.dtype))
        error = torch.cat(errors)
        if len(error) == 0:
            return self.zero(embeddings)
        mean = error.square().mean()
        return LossOutput(mean, {"rms": mean.detach().sqrt()})
