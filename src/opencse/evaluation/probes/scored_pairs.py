"""Probes of scored pairs: misleading wording (OssCSE §3.3), length (DebCSE §2.2), different words (SAN §5.2)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opencse.evaluation import ScoredPairs, TextEmbeddings
from opencse.evaluation.correlation import paired_cosine, spearman, why_undefined
from opencse.evaluation.probes.estimates import Estimate, mean_estimate, partial_spearman, weighted
from opencse.text.surface import Split, consistency_opposition, lexical_overlap, match_error_rate


@dataclass(frozen=True, kw_only=True)
class PublishedSplit:
    """One row of OssCSE Tables 2 and 6; correlations as printed (not times 100).

    Attributes:
        pairs: Consistent and opposed pairs.
        median_score: Median human score.
        median_error_rate: Median match error rate.
        unsupervised: Spearman of unsupervised SimCSE (BERT-base) on the consistent and the opposed pairs.
        supervised: The same for supervised SimCSE.
    """

    pairs: tuple[int, int]
    median_score: float
    median_error_rate: float
    unsupervised: tuple[float, float]
    supervised: tuple[float, float]


def _row(pairs: str, medians: str, unsupervised: str, supervised: str) -> PublishedSplit:
    (cont, oppn), (score, rate), (c, o), (supervised_c, supervised_o) = (
        map(float, cells.split()) for cells in (pairs, medians, unsupervised, supervised)
    )
    return PublishedSplit(
        pairs=(int(cont), int(oppn)),
        median_score=score,
        median_error_rate=rate,
        unsupervised=(c, o),
        supervised=(supervised_c, supervised_o),
    )


SPLITS = {
    "STS12 MSRvid": _row("406 344", "2.4 .444", ".8848 .7306", ".9388 .8862"),
    "STS13 headlines": _row("495 255", "2.6 .625", ".8688 .4487", ".8810 .5281"),
    "STS13 OnWN": _row("286 275", "2.4 .556", ".8584 .7816", ".8788 .8140"),
    "STS14 deft-forum": _row("251 199", "2.6 .4375", ".7269 .3550", ".7942 .3279"),
    "STS14 headlines": _row("483 267", "3 .6", ".8578 .4066", ".8898 .3640"),
    "STS14 images": _row("461 289", "3.2 .5", ".8723 .3638", ".9108 .6450"),
    "STS15 answers-students": _row("494 256", "3 .75", ".8394 .3220", ".8264 .3992"),
    "STS15 headlines": _row("517 233", "2.6 .625", ".8932 .4020", ".9081 .4602"),
    "STS15 images": _row("548 202", "2.5 .538", ".8926 .5648", ".9446 .8224"),
    "STS16 answer-answer": _row("134 120", "2 .5", ".7646 .5011", ".8410 .6070"),
    "STS16 headlines": _row("160 89", "2 .625", ".8887 .3836", ".8793 .4075"),
    "STS16 plagiarism": _row("153 77", "3 .737", ".9098 .5058", ".9137 .5425"),
    "STS16 postediting": _row("180 64", "3 .416", ".8982 .0719", ".9064 .0835"),
    "STS16 question-question": _row("75 134", "2 .4", ".7187 .6347", ".7517 .6821"),
    "STS-B train": _row("3532 2217", "3 .536", ".8577 .4966", ".8928 .6293"),
    "STS-B test": _row("855 524", "2.8 .516", ".8354 .5415", ".8762 .7271"),
}
"""OssCSE Tables 2 and 6, by data set: the sets, their splits, and the scores of SimCSE on the parts."""

WEIGHTED_UNSUPERVISED = (0.8574, 0.4982)
WEIGHTED_SUPERVISED = (0.8891, 0.6152)
"""OssCSE Table 3: average over the sets weighted by their pairs, consistent and opposed."""


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
