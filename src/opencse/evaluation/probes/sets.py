"""The sets of scored pairs that are probed: those of OssCSE Table 2, as subsets of the STS tasks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from opencse.evaluation import STS_TASKS, ScoredPairs, load_sts
from opencse.evaluation.probes.published import SPLITS
from opencse.evaluation.sts_sources import TextVariant
from opencse.foundation.errors import OpencseError


@dataclass(frozen=True, kw_only=True)
class ProbeSets:
    """Sets of scored pairs to probe on.

    Attributes:
        tasks: The seven STS tasks.
        split_sets: Their subsets that OssCSE's rule admits (the median score lies within [2, 3.5]), and both parts of
            STS-B. The sixteen sets of OssCSE Table 2 are among them.
        missing: Sets of Table 2 that the source lacks, with the reason.
    """

    tasks: tuple[ScoredPairs, ...]
    split_sets: tuple[ScoredPairs, ...]
    missing: dict[str, str]


def load_probe_sts(source: str | Path, *, text: TextVariant = "senteval") -> ProbeSets:
    """Load the seven STS tasks and the subsets on which surface bias is measured.

    Args:
        source: As for `opencse.evaluation.load_sts`.
        text: `senteval`, the text of the published splits, or `raw`.

    The training part of STS-B, which evaluation does not need, may be absent.

    Raises:
        OpencseError: As `load_sts`.
    """
    tasks = load_sts(source, text=text, tasks=STS_TASKS)
    parts = [part for task in tasks if task.name != "SICK-R" for part in by_subset(task)]
    missing = {}
    try:
        train = load_sts(source, text=text, tasks=["STS-B"], split="train")[0]
        parts.append(replace(train, name="STS-B train"))
    except OpencseError as error:
        missing["STS-B train"] = error.problem
    parts = [replace(part, name="STS-B test") if part.name == "STS-B" else part for part in parts]
    parts = [part for part in parts if part.name in SPLITS or 2 <= np.median(part.gold) <= 3.5]
    found = {part.name for part in parts}
    missing |= {name: "the source has no such subset" for name in SPLITS if name not in found | missing.keys()}
    return ProbeSets(tasks=tuple(tasks), split_sets=tuple(parts), missing=missing)


def by_subset(pairs: ScoredPairs) -> list[ScoredPairs]:
    """Return one set per subset, in order of first occurrence, or the set itself if it has no subsets."""
    if pairs.subsets is None:
        return [pairs]
    members: dict[str, list[int]] = {}
    for row, subset in enumerate(pairs.subsets):
        members.setdefault(subset, []).append(row)
    return [_rows(pairs, f"{pairs.name} {subset}", rows) for subset, rows in members.items()]


def _rows(pairs: ScoredPairs, name: str, rows: Sequence[int]) -> ScoredPairs:
    return ScoredPairs(
        name=name,
        sentence1=[pairs.sentence1[row] for row in rows],
        sentence2=[pairs.sentence2[row] for row in rows],
        scores=[pairs.scores[row] for row in rows],
        text=pairs.text,
    )
