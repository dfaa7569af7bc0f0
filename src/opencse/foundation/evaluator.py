"""Scores of a model while it trains: the interface between evaluation and training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class Evaluator(Protocol):
    """Scores of an encoder that trains."""

    def start(self, encoder: SentenceTransformer) -> None:
        """Prepare for an encoder, such as by tokenising texts; it is not trained yet."""

    def scores(self) -> dict[str, float]:
        """Return the scores of the encoder's current weights by name."""


class VectorEvaluator(Evaluator, Protocol):
    """Scores that depend only on the vectors of some texts, which may be changed first."""

    def vectors(self) -> np.ndarray:
        """Return the vectors of the texts with the encoder's current weights, (n, d)."""

    def scored(self, vectors: np.ndarray) -> dict[str, float]:
        """Return the scores of vectors of the same texts by name."""


@dataclass(frozen=True, kw_only=True)
class Evaluators:
    """Everything that is measured of a model while it trains.

    Attributes:
        development: Scores whose mean is the development score, higher is better; None to select no
            step by scores.
        guards: Scores that must not fall, which limit the strength of a meaning block.
        meaning: Scores of what the block is for, shown beside the guards.
        watch: Further evaluators, logged with each development score.
    """

    development: Evaluator | None = None
    guards: VectorEvaluator | None = None
    meaning: VectorEvaluator | None = None
    watch: Sequence[Evaluator] = ()

    def start(self, encoder: SentenceTransformer) -> None:
        """Prepare all evaluators for an encoder."""
        for evaluator in (self.development, self.guards, self.meaning, *self.watch):
            if evaluator is not None:
                evaluator.start(encoder)

    def digests(self) -> dict[str, str]:
        """Return the hashes of the sets that decide which weights are kept; a run is resumed with the same ones.

        An evaluator that decides has a `digest`; one without is not compared.
        """
        deciding = {
            "development set": self.development,
            "guards": self.guards,
            "measures of meaning": self.meaning,
        }
        digests = {}
        for name, evaluator in deciding.items():
            digests[name] = "none" if evaluator is None else getattr(evaluator, "digest", "unknown")
        return digests

    def development_score(self) -> float:
        """Return the development score of the current weights; needs a development evaluator."""
        assert self.development is not None
        scores = self.development.scores()
        return sum(scores.values()) / len(scores)


NO_EVALUATORS = Evaluators()
"""No evaluators: the weights of the last step are kept."""
