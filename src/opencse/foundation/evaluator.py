"""Scores of a model while it trains: the interface between evaluation, which computes them, and training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class Measure(Protocol):
    """Scores of an encoder that trains."""

    def start(self, encoder: SentenceTransformer) -> None:
        """Prepare for an encoder, such as by tokenising texts; it is not trained yet."""

    def scores(self) -> dict[str, float]:
        """Return the scores of the encoder's current weights by name."""


class VectorMeasure(Measure, Protocol):
    """Scores that depend on the vectors of some texts alone, which may be changed before they are scored."""

    def vectors(self) -> np.ndarray:
        """Return the vectors of the texts with the encoder's current weights, (n, d)."""

    def scored(self, vectors: np.ndarray) -> dict[str, float]:
        """Return the scores of vectors of the same texts by name."""


@dataclass(frozen=True, kw_only=True)
class Measures:
    """Everything that is measured of a model while it trains.

    Attributes:
        development: Scores whose mean is the development score, higher is better; None to select no
            step by scores.
        guards: Scores that must not fall, which limit the strength of a meaning block.
        meaning: Scores of what the block is for, shown beside the guards.
        watch: Further measures, logged with each development score.
    """

    development: Measure | None = None
    guards: VectorMeasure | None = None
    meaning: VectorMeasure | None = None
    watch: Sequence[Measure] = ()

    def start(self, encoder: SentenceTransformer) -> None:
        """Prepare all measures for an encoder."""
        for measure in (self.development, self.guards, self.meaning, *self.watch):
            if measure is not None:
                measure.start(encoder)

    def development_score(self) -> float:
        """Return the development score of the current weights; there must be a development measure."""
        assert self.development is not None
        scores = self.development.scores()
        return sum(scores.values()) / len(scores)


UNMEASURED = Measures()
"""No measures: the weights of the last step are kept."""
