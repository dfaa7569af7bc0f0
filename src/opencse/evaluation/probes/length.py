"""Bias by length (DebCSE §2.2) and by wording that human similarity scores do not explain."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from opencse.evaluation import ScoredPairs, TextEmbeddings
from opencse.evaluation.correlation import paired_cosine
from opencse.evaluation.probes.estimates import Estimate, partial_spearman, weighted
from opencse.text.surface import match_error_rate

BINS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 1.0)
"""Edges of the bins of relative length difference |a - b| / max(a, b), in words; the last bin is closed."""


@dataclass(frozen=True, kw_only=True)
class LengthBin:
    """Pairs whose relative length difference lies in one interval.

    Attributes:
        low: Lower edge.
        high: Upper edge.
        pairs: Number of pairs.
        cosine: Mean cosine; None if there is no pair.
        excess: Mean residual of the cosine after linear regression on the gold score, set by set.
    """

    low: float
    high: float
    pairs: int
    cosine: float | None
    excess: float | None


@dataclass(frozen=True, kw_only=True)
class LengthBias:
    """Partial rank correlations given the gold score, averaged over sets with their numbers of pairs as weights.

    Attributes:
        length: Correlation of cosine and relative length difference. Below 0, the model gives a lower similarity to
            pairs that differ more in length, though people score them the same.
        wording: Correlation of cosine and match error rate.
        by_set: Both correlations for each set.
        bins: Cosines by length difference over all sets.
    """

    length: Estimate
    wording: Estimate
    by_set: dict[str, tuple[Estimate, Estimate]]
    bins: tuple[LengthBin, ...]


class LengthProbe:
    """Partial correlation of cosine with length difference and with wording difference.

    Args:
        sets: Sets of scored pairs, each on its own scale.
    """

    def __init__(self, sets: Sequence[ScoredPairs]) -> None:
        self.sets = tuple(sets)
        self._length = [_length_difference(each.sentence1, each.sentence2) for each in sets]
        self._wording = [match_error_rate(each.sentence1, each.sentence2) for each in sets]

    def texts(self) -> Iterator[str]:
        """Yield every text whose vector `measure` needs."""
        for each in self.sets:
            yield from each.texts()

    def measure(self, embeddings: TextEmbeddings) -> LengthBias:
        """Return the correlations, and mean cosines by bin of length difference."""
        cosines = [paired_cosine(embeddings(each.sentence1), embeddings(each.sentence2)) for each in self.sets]
        by_set = {
            each.name: (partial_spearman(cosine, length, each.gold), partial_spearman(cosine, wording, each.gold))
            for each, cosine, length, wording in zip(self.sets, cosines, self._length, self._wording, strict=True)
        }
        excess = [_residuals(cosine, each.gold) for each, cosine in zip(self.sets, cosines, strict=True)]
        return LengthBias(
            length=weighted([length for length, _ in by_set.values()]),
            wording=weighted([wording for _, wording in by_set.values()]),
            by_set=by_set,
            bins=tuple(_bins(*(np.concatenate([np.zeros(0), *parts]) for parts in (self._length, cosines, excess)))),
        )


def _length_difference(first: Sequence[str], second: Sequence[str]) -> np.ndarray:
    a, b = (np.array([len(text.split()) for text in side], dtype=np.float64) for side in (first, second))
    return np.abs(a - b) / np.maximum(np.maximum(a, b), 1)


def _residuals(cosine: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """Return the residuals of the cosine's least-squares line over the gold score (of its mean if that is constant)."""
    centred = gold - gold.mean()
    slope = centred @ cosine / (centred @ centred) if np.ptp(gold) else 0.0
    return cosine - cosine.mean() - slope * centred


def _bins(difference: np.ndarray, cosine: np.ndarray, excess: np.ndarray) -> Iterator[LengthBin]:
    bin_of = np.clip(np.digitize(difference, BINS) - 1, 0, len(BINS) - 2)
    for index in range(len(BINS) - 1):
        inside = bin_of == index
        count = int(inside.sum())
        yield LengthBin(
            low=BINS[index],
            high=BINS[index + 1],
            pairs=count,
            cosine=float(cosine[inside].mean()) if count else None,
            excess=float(excess[inside].mean()) if count else None,
        )
