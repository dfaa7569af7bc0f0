"""Groups of sentence pairs that a figure or a case study shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opencse.evaluation import ScoredPairs, load_sts
from opencse.evaluation.development import sts_text
from opencse.evaluation.probes import ProbeData
from opencse.foundation.errors import OpencseError
from opencse.text.surface import lexical_overlap


@dataclass(frozen=True, kw_only=True)
class PairGroup:
    """A group of sentence pairs: from opencse's own sentences, from the STS tasks, or written out.

    Attributes:
        name: What its columns begin with.
        transformation: Sentences of the probe with this transformation, such as `negation`.
        least_score: Pairs of the STS tasks with at least this human score …
        below_score: … below this one …
        below_overlap: … and with a lexical overlap below this …
        task: … of this task alone; empty for all.
        place: A single pair of the STS data: its task, its part, and its row from 0.
        sentence: One sentence …
        versions: … and its versions.
    """

    name: str
    transformation: str = ""
    least_score: float | None = None
    below_score: float = 5.01
    below_overlap: float = 1.01
    task: str = ""
    place: tuple[str, str, int] | None = None
    sentence: str = ""
    versions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        sources = (self.transformation, self.least_score is not None, self.versions, self.place)
        if sum(map(bool, sources)) != 1:
            raise ValueError("a group has a transformation, a least score, a place, or a sentence with versions")


@dataclass(frozen=True, kw_only=True)
class SentencePairs:
    """n sentence pairs.

    Attributes:
        first: The sentences.
        second: What each is compared with.
        scores: Human scores; empty if there are none.
    """

    first: Sequence[str]
    second: Sequence[str]
    scores: Sequence[float] = ()


def load_group(group: PairGroup, data: ProbeData, source: str | Path | None = None) -> SentencePairs:
    """Return the pairs of a group, each distinct pair once; scored pairs with the highest scores first.

    Args:
        group: Which pairs.
        data: The sentences with transformations, and the STS tasks or the user's scored pairs.
        source: The STS files, for a group with a place.

    Raises:
        OpencseError: There is no such pair.
    """
    if group.versions:
        return SentencePairs(first=[group.sentence] * len(group.versions), second=group.versions)
    if group.transformation:
        if data.sentences is None or group.transformation not in data.sentences.kinds:
            raise OpencseError(f"no sentences with the transformation {group.transformation!r}")
        _, first, second = data.sentences.pairs(group.transformation)
        return SentencePairs(first=first, second=second)
    if group.place is not None:
        task, split, row = group.place
        if source is None:
            raise OpencseError(f"the group {group.name} is a pair of {task}", "Pass --data.")
        (pairs,) = load_sts(source, text=sts_text(source), tasks=[task], split=split)
        return SentencePairs(first=[pairs.sentence1[row]], second=[pairs.sentence2[row]], scores=[pairs.scores[row]])
    found: dict[tuple[str, str], float] = {}
    for each in data.sts or data.pairs:
        if 1 < each.gold.max() <= 5 and (not group.task or group.task == each.name or not data.sts):
            found |= _high_scored(each, group)
    if not found:
        raise OpencseError(f"no pair has a score of at least {group.least_score:g} and so little overlap")
    ranked = sorted(found, key=lambda pair: -found[pair])
    return SentencePairs(
        first=[a for a, _ in ranked], second=[b for _, b in ranked], scores=[found[pair] for pair in ranked]
    )


def _high_scored(pairs: ScoredPairs, group: PairGroup) -> dict[tuple[str, str], float]:
    overlap = lexical_overlap(pairs.sentence1, pairs.sentence2)
    scored = (pairs.gold >= (group.least_score or 0)) & (pairs.gold < group.below_score)
    rows = np.flatnonzero(scored & (overlap < group.below_overlap)).tolist()
    return {(pairs.sentence1[row], pairs.sentence2[row]): pairs.scores[row] for row in rows}
