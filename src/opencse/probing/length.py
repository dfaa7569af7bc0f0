"""Surface bias that is left when people's judgement is accounted for: by length (DebCSE §2.2), and by wording."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from opencse.evaluation import Embeddings, ScoredPairs
from opencse.evaluation.correlation import paired_cosine
from opencse.probing.estimates import Estimate, partial_spearman, weighted
from opencse.surface import match_error_rate

BINS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 1.0)
"""Edges of the bins of relative length difference |a - b| / max(a, b), in words; the last bin is closed."""


@dataclass(frozen=True, kw_only=True)
class Bin:
    """Pairs with a like difference of length.

    Attributes:
        low: Lower edge.
        high: Upper edge.
        pairs: How many.
        cosine: Their mean cosine; None for no pair.
        excess: Mean cosine beyond what a straight line through the gold scores of each set predicts.
    """

    low: float
    high: float
    pairs: int
    cosine: float | None
    excess: float | None


@dataclass(frozen=True, kw_only=True)
class LengthBias:
    """Partial rank correlations given the gold score: computed in each set, averaged by pairs.

    Attributes:
        length: Of cosine and relative length difference. Below 0: of two pairs that people judge alike, the model
            takes that with the larger difference for the less similar.
        wording: Of cosine and match error rate, likewise.
        by_set: Both, for each set.
        bins: Cosines by length difference, all sets together.
    """

    length: Estimate
    wording: Estimate
    by_set: dict[str, tuple[Estimate, Estimate]]
    bins: tuple[Bin, ...]


class LengthProbe:
    """Similarity against difference of length.

    Args:
        sets: Sets of scored pairs, each on its own scale.
    """

    def __init__(self, sets: Sequence[ScoredPairs]) -> None:
        self.sets = tuple(sets)
        self._length = [_length_difference(each.sentence1, each.sentence2) for each in sets]
        self._wording = [match_error_rate(each.sentence1, each.sentence2) for each in sets]

    def texts(self) -> Iterator[str]:
        """Every text that `measure` looks up."""
        for each in self.sets:
            yield from each.sentence1
            yield from each.sentence2

    def measure(self, embeddings: Embeddings) -> LengthBias:
        """Correlate, and average by bins."""
        cosines = [paired_cosine(embeddings(each.sentence1), embeddings(each.sentence2)) for each in self.sets]
        by_set = {
            each.name: (partial_spearman(cosine, length, each.gold), partial_spearman(cosine, wording, each.gold))
            for each, cosine, length, wording in zip(self.sets, cosines, self._length, self._wording, strict=True)
        }
        excess = [_beyond_gold(cosine, each.gold) for each, cosine in zip(self.sets, cosines, strict=True)]
        return LengthBias(
            length=weighted([length for length, _ in by_set.values()]),
            wording=weighted([wording for _, wording in by_set.values()]),
            by_set=by_set,
            bins=tuple(_bins(*(np.concatenate([np.zeros(0), *parts]) for parts in (self._length, cosines, excess)))),
        )


def _length_difference(first: Sequence[str], second: Sequence[str]) -> np.ndarray:
    a, b = (np.array([len(text.split()) for text in side], dtype=np.float64) for side in (first, second))
    return np.abs(a - b) / np.maximum(np.maximum(a, b), 1)


def _beyond_gold(cosine: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """Cosine minus its least-squares line over the gold score (its mean where the score is constant)."""
    centred = gold - gold.mean()
    slope = centred @ cosine / (centred @ centred) if np.ptp(gold) else 0.0
    return cosine - cosine.mean() - slope * centred


def _bins(difference: np.ndarray, cosine: np.ndarray, excess: np.ndarray) -> Iterator[Bin]:
    which = np.clip(np.digitize(difference, BINS) - 1, 0, len(BINS) - 2)
    for index in range(len(BINS) - 1):
        inside = which == index
        count = int(inside.sum())
        yield Bin(
            low=BINS[index],
            high=BINS[index + 1],
            pairs=count,
            cosine=float(cosine[inside].mean()) if count else None,
            excess=float(excess[inside].mean()) if count else None,
        )
