"""Groups of sentence pairs that a figure or a case study shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from opencse.evaluation import ScoredPairs
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
        below_overlap: … and a lexical overlap below this.
        sentence: One sentence …
        versions: … and its versions.
    """

    name: str
    transformation: str = ""
    least_score: float | None = None
    below_overlap: float = 1.01
    sentence: str = ""
    versions: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (bool(self.transformation), self.least_score is not None, bool(self.versions)).count(True) != 1:
            raise ValueError("a group has a transformation, a least score, or a sentence with versions")


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


def load_group(group: PairGroup, data: ProbeData) -> SentencePairs:
    """Return the pairs of a group, each distinct pair once; scored pairs with the highest scores first.

    Args:
        group: Which pairs.
        data: The sentences with transformations, and the STS tasks or the user's scored pairs.

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
    found: dict[tuple[str, str], float] = {}
    for each in data.sts or data.pairs:
        if 1 < each.gold.max() <= 5:  # else another scale
            found |= _high_scored(each, group)
    if not found:
        raise OpencseError(f"no pair has a score of at least {group.least_score:g} and so little overlap")
    ranked = sorted(found, key=lambda pair: -found[pair])
    return SentencePairs(
        first=[a for a, _ in ranked], second=[b for _, b in ranked], scores=[found[pair] for pair in ranked]
    )


def _high_scored(pairs: ScoredPairs, group: PairGroup) -> dict[tuple[str, str], float]:
    overlap = lexical_overlap(pairs.sentence1, pairs.sentence2)
    rows = np.flatnonzero((pairs.gold >= (group.least_score or 0)) & (overlap < group.below_overlap)).tolist()
    return {(pairs.sentence1[row], pairs.sentence2[row]): pairs.scores[row] for row in rows}
