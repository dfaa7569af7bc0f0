"""Accuracy on triplets: how often the paraphrase is nearer than the contradiction, by grade and by kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from opencse.evaluation import TextEmbeddings, Triplet, TripletSet, TripletTask
from opencse.evaluation.probes.estimates import Estimate, mean_estimate
from opencse.foundation.reading import ASSETS
from opencse.foundation.tables import read_table


@dataclass(frozen=True, kw_only=True)
class TripletResult:
    """Accuracy on one set of triplets.

    Attributes:
        name: Name of the set.
        accuracy: Share of all triplets whose positive is nearer than their negative; a tie is not.
        groups: The same by group, such as `grade: near`, in the order of the file.
        rows_right: For each triplet, in order: whether its positive is nearer.
    """

    name: str
    accuracy: Estimate
    groups: dict[str, Estimate]
    rows_right: tuple[bool, ...]


class TripletProbe:
    """Accuracy on sets of triplets, with 95 % intervals.

    Args:
        sets: The sets, such as the written ones of `opencse.evaluation.development_set`.
        negated_antonyms: Whether the choices of `antonym_choices` are measured, too: how often the negated antonym is
            nearer than both contradictions.
    """

    def __init__(self, sets: Sequence[TripletSet], *, negated_antonyms: bool = False) -> None:
        self._tasks = [TripletTask(data=each) for each in sets]
        self._antonyms = TripletTask(data=_antonym_triplets()) if negated_antonyms else None

    def texts(self) -> Iterator[str]:
        """Yield every text whose vector `measure` needs."""
        for task in (*self._tasks, *([self._antonyms] if self._antonyms else [])):
            yield from task.texts()

    def measure(self, embeddings: TextEmbeddings) -> tuple[TripletResult, ...]:
        """Return the accuracy on every set, over all triplets and for each group."""
        found = [_result(task.name, task.margins(embeddings) > 0, task.data.groups()) for task in self._tasks]
        if self._antonyms is not None:
            right = self._antonyms.margins(embeddings).reshape(-1, 2).min(axis=1) > 0
            groups = {group: rows[::2] // 2 for group, rows in self._antonyms.data.groups().items()}
            found.append(_result(self._antonyms.name, right, groups))
        return tuple(found)


def _result(name: str, right: np.ndarray, groups: Mapping[str, np.ndarray]) -> TripletResult:
    """Return the accuracy of n choices, and that of the rows of each group."""
    parts = {group: mean_estimate(right[rows]) for group, rows in groups.items()}
    return TripletResult(name=name, accuracy=mean_estimate(right), groups=parts, rows_right=tuple(right.tolist()))


AntonymChoice = tuple[str, str, str, str]
"""A sentence ("The soup is hot."), its negated antonym ("The soup isn't cold."), and two contradictions."""


@cache
def antonym_choices() -> dict[str, tuple[AntonymChoice, ...]]:
    """Return the written choices by the form of the sentence: `affirmed`, `negated`, or `verbs` of either."""
    found: dict[str, list[AntonymChoice]] = {"affirmed": [], "negated": [], "verbs": []}
    for _, row in read_table(ASSETS / "probe" / "antonyms.tsv"):
        said, opposed, not_said, not_opposed = (
            str(row[name]) for name in ("said", "opposed", "not_said", "not_opposed")
        )
        affirmed, negated = ("verbs", "verbs") if row["form"] == "verb" else ("affirmed", "negated")
        found[affirmed] += [(said, not_opposed, not_said, opposed), (opposed, not_said, not_opposed, said)]
        found[negated] += [(not_said, opposed, said, not_opposed), (not_opposed, said, opposed, not_said)]
    return {form: tuple(rows) for form, rows in found.items()}


def _antonym_triplets() -> TripletSet:
    """Return two triplets for each choice, one with either contradiction."""
    rows = [(form, row) for form, rows in antonym_choices().items() for row in rows]
    triplets = (
        Triplet(id=f"{row[0]} {negative}", anchor=row[0], positive=row[1], negative=negative, groups={"form": form})
        for form, row in rows
        for negative in row[2:]
    )
    return TripletSet(name="negated antonyms", triplets=tuple(triplets))
