"""The term: one named, weighted summand of an objective."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from torch import Tensor

Embeddings = Mapping[str, Tensor]


@dataclass
class Context:
    """What a term may know beside the embeddings, and where it reports what it saw.

    Attributes:
        step: The optimiser step, from 0.
        progress: The share of the training that is done, in [0, 1].
        teachers: For each teacher the vectors (B, d_t), fp32, of the views that some term reads from it, over the
            global batch; zero where the row lacks the view.
        reports: Diagnostics by name, filled by the terms (detached scalars).
    """

    step: int = 0
    progress: float = 0.0
    teachers: Mapping[str, Mapping[str, Tensor]] = field(default_factory=dict)
    reports: dict[str, Tensor] = field(default_factory=dict)

    def report(self, name: str, value: Tensor) -> None:
        """Record a diagnostic, such as an in-batch accuracy, for the log."""
        self.reports[name] = value.detach()


@dataclass(frozen=True, kw_only=True)
class Term:
    """A pure function of named embeddings.

    A term neither owns nor calls the encoder, so it can be tested against a plain transcription of its paper, gathered
    across processes, and combined with any other.

    Attributes:
        kind: What recipes call this class.
        name: What this term is called in logs and `--set`; its kind where empty.
        weight: Its factor in the objective.
    """

    kind: ClassVar[str]

    name: str = ""
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self.kind)

    @property
    def views(self) -> tuple[str, ...]:
        """The views whose embeddings the term reads."""
        raise NotImplementedError

    @property
    def teachers(self) -> tuple[str, ...]:
        """The teachers whose vectors of these views the term reads."""
        return ()

    def __call__(self, embeddings: Embeddings, present: Embeddings, context: Context) -> Tensor:
        """Compute the unweighted loss.

        Args:
            embeddings: For each view a tensor (B, d), fp32 or fp64, over the global batch.
            present: For each view a boolean tensor (B,): whether the row has this view. The embedding of an absent
                row is zero.
            context: The step, and where to report.

        Returns:
            A scalar that is differentiable with respect to the embeddings; zero where no row has what is needed.
        """
        raise NotImplementedError

    def warnings(self) -> list[str]:
        """Settings that are legal but probably not meant."""
        return []
