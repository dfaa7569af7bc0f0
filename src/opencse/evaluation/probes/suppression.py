"""Feature suppression: cosines of pairs with the same meaning in different words (SAN §5.2, Figure 4)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from opencse.evaluation import ScoredPairs, TextEmbeddings
from opencse.evaluation.correlation import paired_cosine
from opencse.evaluation.probes.estimates import Estimate, mean_estimate
from opencse.text.surface import lexical_overlap

SCORE, OVERLAP = 4.0, 0.6
"""Pairs with at least this human score (of 5) and less than this lexical overlap (SAN §5.2)."""


@dataclass(frozen=True, kw_only=True)
class Suppression:
    """Cosines of pairs with a similar meaning in different words.

    Attributes:
        cosine: Mean cosine.
        deviation: Standard deviation; smaller is better. None for fewer than two pairs.
        quartiles: 25th, 50th and 75th percentile.
        cosines: All cosines, sorted.
        left_out: Sets whose scores are not on a 0 to 5 scale.
    """

    cosine: Estimate
    deviation: float | None
    quartiles: tuple[float, ...]
    cosines: tuple[float, ...]
    left_out: tuple[str, ...]


class SuppressionProbe:
    """Pairs with a high human score and a low lexical overlap, each distinct pair once.

    Args:
        sets: Sets of scored pairs. A set whose highest score is above 5 or at most 1 is on another scale and is left
            out.
    """

    def __init__(self, sets: Sequence[ScoredPairs]) -> None:
        self._left_out = tuple(each.name for each in sets if not 1 < each.gold.max() <= 5)
        pairs: dict[tuple[str, str], None] = {}
        for each in sets:
            if each.name in self._left_out:
                continue
            wanted = (each.gold >= SCORE) & (lexical_overlap(each.sentence1, each.sentence2) < OVERLAP)
            pairs |= {(each.sentence1[row], each.sentence2[row]): None for row in np.flatnonzero(wanted).tolist()}
        self._first, self._second = ([pair[side] for pair in pairs] for side in (0, 1))

    def texts(self) -> Iterator[str]:
        """Yield every text whose vector `measure` needs."""
        yield from self._first
        yield from self._second

    def measure(self, embeddings: TextEmbeddings) -> Suppression:
        """Return the distribution of their cosines."""
        empty = f"no pair has a score of at least {SCORE:g} and a lexical overlap below {OVERLAP:g}"
        if not self._first:
            nothing = Estimate(value=None, rows=0, undefined=empty)
            return Suppression(cosine=nothing, deviation=None, quartiles=(), cosines=(), left_out=self._left_out)
        cosines = np.sort(paired_cosine(embeddings(self._first), embeddings(self._second)))
        return Suppression(
            cosine=mean_estimate(cosines),
            deviation=float(cosines.std(ddof=1)) if len(cosines) > 1 else None,
            quartiles=tuple(np.percentile(cosines, [25, 50, 75]).tolist()),
            cosines=tuple(cosines.round(4).tolist()),
            left_out=self._left_out,
        )
