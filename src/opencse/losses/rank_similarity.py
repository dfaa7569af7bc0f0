"""RankEncoder: two sentences are similar if they rank the sentences of a corpus in the same order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from opencse.foundation.numbers import check_least
from opencse.losses.base import (
    Context,
    Embeddings,
    Loss,
    LossBuildContext,
    LossModule,
    LossOutput,
)


@dataclass(frozen=True, kw_only=True)
class RankSimilarityLoss(Loss):
    r"""Squared difference of cosines and of how alike a teacher's neighbours are.

    .. math:: L = \frac{1}{|P|} \sum_{(i, j) \in P} \left( c(a_i, p_j) - \rho_{ij} \right)^2

    ρ is Spearman's correlation of the teacher's cosines of the sentences i and j with all sentences
    of a corpus, and P the pairs whose ρ is in a range. Source: Seonwoo et al., Ranking-Enhanced
    Unsupervised Sentence Representation Learning (ACL 2023), eq. 5, and its code. The corpus are
    the latest sentences of the training and the batch itself; the authors draw theirs beforehand.

    Attributes:
        anchor: View of the anchors, whose teacher vectors are read.
        positive: View that the anchors are compared with.
        teacher: Name of the teacher, an encoder that was trained without labels.
        corpus_size: Number of sentences of the corpus.
        between: Smallest and largest ρ.

    Example:
        >>> anchor, twin = torch.eye(3), torch.tensor([[1.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
        >>> teacher = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
        >>> loss = RankSimilarityLoss(between=(-1.0, 1.0))
        >>> memory = {loss.name: CorpusMemory(size=10)}
        >>> context = Context(teachers={"a": {"anchor": teacher}}, modules=memory)
        >>> f"{loss(anchor, twin, context=context).value:.2f}"
        '0.32'
    """

    kind: ClassVar[str] = "rank_similarity"
    view_fields: ClassVar[tuple[str, ...]] = ("anchor", "positive")

    anchor: str = "anchor"
    positive: str = "twin"
    teacher: str = "a"
    corpus_size: int = 10_000
    between: tuple[float, float] = (0.5, 0.9999)

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, 2, "corpus_size")
        lower, upper = self.between
        if not -1 <= lower < upper <= 1:
            raise ValueError(
                f"between must be two correlations from -1 to 1, the smaller first, not {list(self.between)}"
            )

    @property
    def teachers(self) -> tuple[str, ...]:
        """The teacher."""
        return (self.teacher,)

    def module(self, build: LossBuildContext) -> LossModule:
        """Return the memory of the corpus."""
        return CorpusMemory(self.corpus_size)

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; O(N C d) for N anchors and a corpus of C sentences."""
        memory: CorpusMemory = context.modules[self.name]
        rows = context.rows(present, self.anchor, self.positive)
        if len(rows) < 2:
            return self.zero(embeddings)
        teacher = F.normalize(context.teachers[self.teacher][self.anchor][rows], dim=-1)
        corpus = memory.with_batch(teacher, context.step)
        target = rank_correlations(teacher @ corpus.T)

        anchors = F.normalize(embeddings[self.anchor][rows], dim=-1)
        positives = F.normalize(embeddings[self.positive][rows], dim=-1)
        cosines = anchors @ positives.T
        lower, upper = self.between
        counted = ((target >= lower) & (target <= upper)).to(cosines.dtype)
        errors = (cosines - target.to(cosines.dtype)).square()
        value = (errors * counted).sum() / (counted.sum() + 1e-8)
        return LossOutput(value, {"pairs": counted.mean()})


def rank_correlations(values: Tensor) -> Tensor:
    """Return Spearman's correlation of each row with each other row, (n, n).

    Equal values have different ranks, in the order of their columns.

    Args:
        values: The values, (n, columns).
    """
    order = values.argsort(dim=1, stable=True)
    places = torch.arange(values.shape[1], device=values.device, dtype=values.dtype)
    ranks = torch.zeros_like(values).scatter(1, order, places.expand_as(values))
    unit = F.normalize(ranks - ranks.mean(dim=1, keepdim=True), dim=1)
    return unit @ unit.T


class CorpusMemory(LossModule):
    """The teacher's vectors of the latest sentences, saved with each checkpoint.

    Args:
        size: Number of sentences.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size
        self._vectors = torch.zeros(0, 0)
        self._step = -1

    def with_batch(self, vectors: Tensor, step: int) -> Tensor:
        """Return the memory and after it these vectors (n, width), which it keeps from now on.

        At fewer dimensions, a loss is computed again at the same step; the batch is then the latest.
        """
        if step != self._step:
            remembered = self._vectors.to(vectors)
            if not len(remembered):
                remembered = vectors[:0]
            self._vectors = torch.cat([remembered, vectors])[-self._size :].detach()
            self._step = step
        return self._vectors.to(vectors)

    def get_extra_state(self) -> Tensor:
        """Return the vectors."""
        return self._vectors

    def set_extra_state(self, state: Tensor) -> None:
        """Set what `get_extra_state` returned."""
        self._vectors = state
        self._step = -1
