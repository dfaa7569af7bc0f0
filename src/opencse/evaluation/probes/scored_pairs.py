"""The probe of scored pairs whose wording misleads (OssCSE §3.3), and the sets on which it was published."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from opencse.evaluation import ScoredPairs, TextEmbeddings, load_sts
from opencse.evaluation.probes.estimates import Estimate, weighted
from opencse.evaluation.sts import paired_cosine, spearman, why_undefined
from opencse.foundation.errors import OpencseError
from opencse.text.surface import consistency_opposition


class PublishedSplit(NamedTuple):
    """One row of OssCSE Table 2.

    Attributes:
        pairs: Consistent and opposed pairs.
        medians: Median human score and median match error rate.
    """

    pairs: tuple[int, int]
    medians: tuple[float, float]


SPLITS = {
    "STS12 MSRvid": PublishedSplit((406, 344), (2.4, 0.444)),
    "STS13 headlines": PublishedSplit((495, 255), (2.6, 0.625)),
    "STS13 OnWN": PublishedSplit((286, 275), (2.4, 0.556)),
    "STS14 deft-forum": PublishedSplit((251, 199), (2.6, 0.4375)),
    "STS14 headlines": PublishedSplit((483, 267), (3.0, 0.6)),
    "STS14 images": PublishedSplit((461, 289), (3.2, 0.5)),
    "STS15 answers-students": PublishedSplit((494, 256), (3.0, 0.75)),
    "STS15 headlines": PublishedSplit((517, 233), (2.6, 0.625)),
    "STS15 images": PublishedSplit((548, 202), (2.5, 0.538)),
    "STS16 answer-answer": PublishedSplit((134, 120), (2.0, 0.5)),
    "STS16 headlines": PublishedSplit((160, 89), (2.0, 0.625)),
    "STS16 plagiarism": PublishedSplit((153, 77), (3.0, 0.737)),
    "STS16 postediting": PublishedSplit((180, 64), (3.0, 0.416)),
    "STS16 question-question": PublishedSplit((75, 134), (2.0, 0.4)),
    "STS-B train": PublishedSplit((3532, 2217), (3.0, 0.536)),
    "STS-B test": PublishedSplit((855, 524), (2.8, 0.516)),
}
"""OssCSE Table 2, by data set: the sets and their splits."""

WEIGHTED_UNSUPERVISED = (0.8574, 0.4982)

WEIGHTED_SUPERVISED = (0.8891, 0.6152)
"""OssCSE Table 3: average over the sets weighted by their pairs, consistent and opposed."""


def load_probe_sts(source: str | Path) -> tuple[list[ScoredPairs], list[ScoredPairs], dict[str, str]]:
    """Load the seven STS tasks and the sets of OssCSE Table 2, on which surface bias is measured.

    Args:
        source: As for `opencse.evaluation.load_sts`.

    Returns:
        The tasks; the sets of the table: subsets of the tasks and two parts of STS-B; and why the other ones are
        missing, by name. The training part of STS-B, which evaluation does not need, may be absent.

    Raises:
        OpencseError: As `load_sts`.
    """
    tasks, missing = load_sts(source), dict[str, str]()
    sets = [part for task in tasks for part in _by_subset(task)]
    try:
        sets += [replace(pairs, name="STS-B train") for pairs in load_sts(source, tasks=["STS-B"], split="train")]
    except OpencseError as error:
        missing["STS-B train"] = error.problem
    sets = [replace(each, name="STS-B test") if each.name == "STS-B" else each for each in sets]
    found = {each.name: each for each in sets if each.name in SPLITS}
    missing |= {name: "the source has no such subset" for name in SPLITS if name not in {*found, *missing}}
    return tasks, list(found.values()), missing


def _by_subset(pairs: ScoredPairs) -> list[ScoredPairs]:
    """Return one set per subset, in order of first occurrence, or the set itself if it has no subsets."""
    if pairs.subsets is None:
        return [pairs]
    members: dict[str, list[int]] = {}
    for row, subset in enumerate(pairs.subsets):
        members.setdefault(subset, []).append(row)
    return [pairs.subset(f"{pairs.name} {subset}", rows) for subset, rows in members.items()]


@dataclass(frozen=True)
class SplitResult:
    """Spearman correlation on both parts of one set, or its average over several sets, weighted by their pairs.

    Attributes:
        name: Name of the set, or of the average.
        consistent: On pairs whose wording agrees with their meaning.
        opposed: On pairs where it misleads.
        median_score: Median human score, at which a set was split; None for an average.
        median_error_rate: Median match error rate, at which it was split.
    """

    name: str
    consistent: Estimate
    opposed: Estimate
    median_score: float | None = None
    median_error_rate: float | None = None


@dataclass(frozen=True, kw_only=True)
class SplitResults:
    """Both parts of several sets, and their average (OssCSE Table 3)."""

    sets: tuple[SplitResult, ...]
    average: SplitResult


def split_results(sets: Sequence[ScoredPairs], embeddings: TextEmbeddings, average: str = "all sets") -> SplitResults:
    """Return the correlation of cosines and human scores on the consistent and on the opposed pairs of some sets.

    Args:
        sets: The sets.
        embeddings: The vectors of their sentences.
        average: Name of the average over all sets.
    """
    found = []
    for pairs in sets:
        cosine = paired_cosine(embeddings(pairs.sentence1), embeddings(pairs.sentence2))
        split = consistency_opposition(pairs.sentence1, pairs.sentence2, pairs.scores)
        sides = [(pairs.gold[part], cosine[part]) for part in (split.consistent, ~split.consistent)]
        first, second = (
            Estimate(value=spearman(*side), rows=len(side[0]), undefined=why_undefined(*side) or "") for side in sides
        )
        found.append(SplitResult(pairs.name, first, second, split.median_score, split.median_error_rate))
    averages = weighted([each.consistent for each in found]), weighted([each.opposed for each in found])
    return SplitResults(sets=tuple(found), average=SplitResult(average, *averages))
