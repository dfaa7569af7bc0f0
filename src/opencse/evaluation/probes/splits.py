"""Correlation with human scores where wording agrees with meaning, and where it misleads (OssCSE §3.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opencse.evaluation import ScoredPairs, TextEmbeddings
from opencse.evaluation.correlation import paired_cosine, spearman, why_undefined
from opencse.evaluation.probes.estimates import Estimate, weighted
from opencse.evaluation.probes.published import SPLITS
from opencse.text.surface import Split, consistency_opposition


@dataclass(frozen=True, kw_only=True)
class SplitResult:
    """Spearman correlation on both parts of one set.

    Attributes:
        name: Name of the set.
        consistent: On pairs whose wording agrees with their meaning.
        opposed: On pairs where it misleads.
        median_score: Median human score, at which the set was split.
        median_error_rate: Median match error rate, at which it was split.
        balanced: Whether the median score lies in OssCSE's range.
        data_sha256: Hash of the pairs.
    """

    name: str
    consistent: Estimate
    opposed: Estimate
    median_score: float
    median_error_rate: float
    balanced: bool
    data_sha256: str


@dataclass(frozen=True, kw_only=True)
class SplitAverage:
    """Averages over several sets, weighted by the number of pairs (OssCSE Table 3).

    Attributes:
        name: Name of the average.
        sets: Their names.
        consistent: Average over the consistent parts.
        opposed: Average over the opposed parts.
    """

    name: str
    sets: tuple[str, ...]
    consistent: Estimate
    opposed: Estimate


@dataclass(frozen=True, kw_only=True)
class SplitResults:
    """Both parts of several sets, and averages; the first average is the headline."""

    sets: tuple[SplitResult, ...]
    averages: tuple[SplitAverage, ...]

    @property
    def consistent(self) -> Estimate:
        """The headline average over consistent parts."""
        return self.averages[0].consistent

    @property
    def opposed(self) -> Estimate:
        """The headline average over opposed parts."""
        return self.averages[0].opposed


class SplitProbe:
    """Correlation on the consistent and the opposed pairs of sets of scored pairs.

    Args:
        sets: The sets. The published rule leaves out those whose median score is outside [2, 3.5] of a 0 to 5 scale;
            this probe only sets `SplitResult.balanced`, since a user's scores may be on another scale.
        averages: The sets of each average by its name; by default one average over all sets.
    """

    def __init__(self, sets: Sequence[ScoredPairs], averages: Mapping[str, Sequence[str]] | None = None) -> None:
        self.sets = tuple(sets)
        self._averages = averages or {"all sets": [each.name for each in sets]}
        self._splits = [consistency_opposition(each.sentence1, each.sentence2, each.scores) for each in self.sets]

    def texts(self) -> Iterator[str]:
        """Yield every text whose vector `measure` needs."""
        for each in self.sets:
            yield from each.texts()

    def measure(self, embeddings: TextEmbeddings) -> SplitResults:
        """Return the correlation of cosines and human scores on both parts of every set."""
        sets = tuple(_accuracy(each, split, embeddings) for each, split in zip(self.sets, self._splits, strict=True))
        averages = (
            SplitAverage(
                name=name,
                sets=tuple(names),
                consistent=weighted([each.consistent for each in sets if each.name in names]),
                opposed=weighted([each.opposed for each in sets if each.name in names]),
            )
            for name, names in self._averages.items()
        )
        return SplitResults(sets=sets, averages=tuple(averages))


def published_averages(sets: Sequence[ScoredPairs]) -> dict[str, list[str]]:
    """Return the sets of each average: those of OssCSE Table 2, and all test sets that its rule admits.

    The rule (median score within [2, 3.5]) admits four subsets that are not in the table: STS12 MSRpar, and STS14
    deft-news, OnWN and tweet-news.
    """
    table = [each.name for each in sets if each.name in SPLITS]
    count = f"{len(table)} of {len(SPLITS)} sets" if len(table) < len(SPLITS) else f"{len(SPLITS)} sets"
    tests = [each.name for each in sets if each.name != "STS-B train"]
    return {f"OssCSE Table 2, {count}": table, f"all test sets by its rule, {len(tests)} sets": tests}


def _accuracy(pairs: ScoredPairs, split: Split, embeddings: TextEmbeddings) -> SplitResult:
    cosine = paired_cosine(embeddings(pairs.sentence1), embeddings(pairs.sentence2))
    return SplitResult(
        name=pairs.name,
        consistent=_correlation(pairs.gold, cosine, split.consistent),
        opposed=_correlation(pairs.gold, cosine, ~split.consistent),
        median_score=split.median_score,
        median_error_rate=split.median_error_rate,
        balanced=split.balanced,
        data_sha256=pairs.sha256,
    )


def _correlation(gold: np.ndarray, cosine: np.ndarray, part: np.ndarray) -> Estimate:
    gold, cosine = gold[part], cosine[part]
    reason = why_undefined(gold, cosine) or ""
    return Estimate(value=spearman(gold, cosine), rows=len(gold), undefined=reason)
