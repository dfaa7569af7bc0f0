"""The shape of the probes that compare texts in pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from opencse.evaluation import TextEmbeddings
from opencse.evaluation.correlation import paired_cosine

Columns = tuple[Sequence[str], Sequence[str]]
"""The first and the second texts of n pairs."""


class PairProbe:
    """A probe of the cosines of some groups of pairs.

    Args:
        groups: The pairs of each group.
    """

    def __init__(self, groups: Sequence[Columns]) -> None:
        self._groups = groups

    def texts(self) -> Iterator[str]:
        """Yield every text whose vector `measure` needs."""
        for first, second in self._groups:
            yield from first
            yield from second

    def cosines(self, embeddings: TextEmbeddings) -> list[np.ndarray]:
        """Return the cosines of the pairs of each group."""
        return [paired_cosine(embeddings(first), embeddings(second)) for first, second in self._groups]
