"""Scores of a model while it trains: the interface between evaluation and training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class Evaluator(Protocol):
    """Scores of an encoder that trains."""

    def start(self, encoder: SentenceTransformer) -> None:
        """Prepare for an encoder, such as by tokenising texts; it is not trained yet."""

    def scores(self) -> dict[str, float]:
        """Return the scores of the encoder's current weights by name."""


def digest_of(evaluator: Evaluator | None) -> str:
    """Return the `digest` of an evaluator that decides what is kept; `unknown` if it has none."""
    if evaluator is None:
        return "none"
    return str(getattr(evaluator, "digest", "unknown"))


@dataclass(frozen=True, kw_only=True)
class Evaluators:
    """Everything that is measured of a model while it trains.

    Attributes:
        development: Scores whose mean is the development score, higher is better; None to select no
            step by scores.
        watch: Further evaluators, logged with each development score.
    """

    development: Evaluator | None = None
    watch: Sequence[Evaluator] = ()

    def start(self, encoder: SentenceTransformer) -> None:
        """Prepare all evaluators for an encoder."""
        for evaluator in (self.development, *self.watch):
            if evaluator is not None:
                evaluator.start(encoder)

    def digests(self) -> dict[str, str]:
        """Return the hash of the set that decides which weights are kept; a run is resumed with the same."""
        return {"development set": digest_of(self.development)}

    def development_score(self) -> float:
        """Return the development score of the current weights; needs a development evaluator."""
        assert self.development is not None
        scores = self.development.scores()
        return sum(scores.values()) / len(scores)


NO_EVALUATORS = Evaluators()
"""No evaluators: the weights of the last step are kept."""
