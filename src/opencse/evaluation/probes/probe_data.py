"""The data that models are probed on, and how it is read."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from opencse.evaluation import (
    DEVELOPMENT_SETS,
    STS_TASKS,
    ScoredPairs,
    TripletSet,
    development_set,
    load_sts,
    read_pairs,
)
from opencse.evaluation.probes.published import SPLITS
from opencse.evaluation.probes.sentences import ProbeSentences, packaged_sentences, read_sentences
from opencse.evaluation.sts_sources import TextVariant
from opencse.foundation.errors import OpencseError


@dataclass(frozen=True, kw_only=True)
class ProbeData:
    """The data of the probes; a probe without data is skipped.

    Args:
        sts: STS tasks, scored as `evaluate` does.
        split_sets: STS sets that are split into consistent and opposed pairs.
        pairs: The user's scored pairs; split too, but not averaged with the others.
        sentences: Sentences with transformations.
        views: Training views; the same as `sentences` or others.
        triplets: Sets of triplets: a text, its paraphrase and its contradiction.
        negated_antonyms: Whether the written negated antonyms are measured (`NegatedAntonymProbe`).
        notes: Remarks on the data for the reader of a report.
    """

    sts: Sequence[ScoredPairs] = ()
    split_sets: Sequence[ScoredPairs] = ()
    pairs: Sequence[ScoredPairs] = ()
    sentences: ProbeSentences | None = None
    views: ProbeSentences | None = None
    triplets: Sequence[TripletSet] = ()
    negated_antonyms: bool = False
    notes: tuple[str, ...] = ()


def load_probe_data(
    *,
    data: str | Path | None = None,
    pairs: Sequence[str | Path] = (),
    sentences: str | Path | None = None,
    text: TextVariant = "senteval",
    limit: int = 2000,
) -> ProbeData:
    """Read the data of the probes.

    Args:
        data: Source of the STS tasks, as for `opencse.evaluation.load_sts`; None for none.
        pairs: Files of scored pairs.
        sentences: Sentences with transformations or built views (`opencse.evaluation.probes.read_sentences`); None
            for those that come with the package.
        text: Text variant of the STS tasks.
        limit: Maximum number of sentences.

    Raises:
        OpencseError: A file cannot be read; the message names file and line.
    """
    notes = []
    own = read_sentences(packaged_sentences() if sentences is None else sentences, limit=limit)
    notes.append(
        f"Sentences: {'those that come with opencse' if sentences is None else own.name}, {len(own)}"
        + (f" of {own.total}, drawn at random." if own.total > len(own) else ".")
    )
    sets = None if data is None else load_probe_sts(data, text=text)
    if sets is None:
        notes.append("No STS data was given (--data), so agreement with people was not measured on them.")
    else:
        notes.append(f"STS text: {sets.tasks[0].text}. Published figures are for senteval, tokenised and lower-cased.")
        notes += [f"Not among the STS sets: {name} ({reason})." for name, reason in sets.missing.items()]
    return ProbeData(
        sts=() if sets is None else sets.tasks,
        split_sets=() if sets is None else sets.split_sets,
        pairs=[read_pairs(path) for path in pairs],
        sentences=own,
        views=None if sentences is None else own,
        triplets=[development_set(name) for name in DEVELOPMENT_SETS] if sentences is None else (),
        negated_antonyms=sentences is None,
        notes=tuple(notes),
    )


@dataclass(frozen=True, kw_only=True)
class ProbeSets:
    """Sets of scored pairs to probe on: those of OssCSE Table 2, as subsets of the STS tasks.

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
    return [pairs.subset(f"{pairs.name} {subset}", rows) for subset, rows in members.items()]
