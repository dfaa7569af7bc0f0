"""Accuracy on triplets: how often the paraphrase is nearer than the contradiction, by grade and by kind."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from opencse.evaluation import TextEmbeddings, TripletSet, TripletTask
from opencse.evaluation.correlation import paired_cosine
from opencse.evaluation.probes.estimates import Estimate, mean_estimate
from opencse.foundation.reading import ASSETS
from opencse.foundation.tables import read_table


@dataclass(frozen=True, kw_only=True)
class TripletGroup:
    """Accuracy on the triplets of a set that share a value, such as the grade `near`.

    Attributes:
        column: The grouping column.
        value: The shared value.
        accuracy: Share whose positive is nearer, with an interval over triplets.
    """

    column: str
    value: str
    accuracy: Estimate


@dataclass(frozen=True, kw_only=True)
class TripletResult:
    """Accuracy on one set of triplets.

    Attributes:
        name: Name of the set.
        accuracy: Share of all triplets whose positive is nearer than their negative; a tie is not.
        groups: The same by group, in the order of the file.
        rows_right: For each triplet, in order: whether its positive is nearer.
    """

    name: str
    accuracy: Estimate
    groups: tuple[TripletGroup, ...]
    rows_right: tuple[bool, ...]


class TripletProbe:
    """Accuracy on sets of triplets, with 95 % intervals.

    Args:
        sets: The sets, such as the written ones of `opencse.evaluation.development_set`.
    """

    def __init__(self, sets: Sequence[TripletSet]) -> None:
        self._tasks = [TripletTask(data=each) for each in sets]

    def texts(self) -> Iterator[str]:
        """Yield every text whose vector `measure` needs."""
        for task in self._tasks:
            yield from task.texts()

    def measure(self, embeddings: TextEmbeddings) -> tuple[TripletResult, ...]:
        """Return the accuracy on every set."""
        return tuple(
            triplet_result(task.name, task.margins(embeddings) > 0, task.data.groups()) for task in self._tasks
        )


def triplet_result(name: str, right: np.ndarray, groups: Mapping[tuple[str, str], np.ndarray]) -> TripletResult:
    """Return the accuracy over all triplets and for each group.

    Args:
        name: Name of the set.
        right: Whether the positive of each triplet is nearer, (n,).
        groups: Rows of every group by column and value.
    """
    return TripletResult(
        name=name,
        accuracy=mean_estimate(right),
        groups=tuple(
            TripletGroup(column=column, value=value, accuracy=mean_estimate(right[rows]))
            for (column, value), rows in groups.items()
        ),
        rows_right=tuple(right.tolist()),
    )


NAME = "negated antonyms"


@dataclass(frozen=True, slots=True)
class AntonymChoice:
    """A sentence, its paraphrase, and two sentences that contradict it.

    Attributes:
        sentence: "The soup is hot."
        paraphrase: "The soup isn't cold."
        contradictions: "The soup isn't hot." and "The soup is cold."
    """

    sentence: str
    paraphrase: str
    contradictions: tuple[str, str]


@cache
def antonym_choices() -> dict[str, tuple[AntonymChoice, ...]]:
    """Return the quadruples by the form of the sentence: `affirmed`, `negated`, or `verbs` of either."""
    found: dict[str, list[AntonymChoice]] = {"affirmed": [], "negated": [], "verbs": []}
    for _, row in read_table(ASSETS / "probe" / "antonyms.tsv"):
        said, opposed, not_said, not_opposed = (
            str(row[name]) for name in ("said", "opposed", "not_said", "not_opposed")
        )
        forms = ("verbs", "verbs") if row["form"] == "verb" else ("affirmed", "negated")
        found[forms[0]] += [
            AntonymChoice(said, not_opposed, (not_said, opposed)),
            AntonymChoice(opposed, not_said, (not_opposed, said)),
        ]
        found[forms[1]] += [
            AntonymChoice(not_said, opposed, (said, not_opposed)),
            AntonymChoice(not_opposed, said, (opposed, not_said)),
        ]
    return {form: tuple(rows) for form, rows in found.items()}


class NegatedAntonymProbe:
    """Share of sentences whose negated antonym is nearer than both contradictions, with 95 % intervals."""

    def __init__(self) -> None:
        self._forms = antonym_choices()
        self._rows = [row for rows in self._forms.values() for row in rows]

    def texts(self) -> Iterator[str]:
        """Yield every text whose vector `measure` needs."""
        for row in self._rows:
            yield from (row.sentence, row.paraphrase, *row.contradictions)

    def measure(self, embeddings: TextEmbeddings) -> TripletResult:
        """Return the accuracy over all sentences and for each form."""
        sentences = embeddings([row.sentence for row in self._rows])
        paraphrase = paired_cosine(sentences, embeddings([row.paraphrase for row in self._rows]))
        nearest = np.max(
            [paired_cosine(sentences, embeddings([row.contradictions[i] for row in self._rows])) for i in (0, 1)],
            axis=0,
        )
        form_of = np.repeat(list(self._forms), [len(rows) for rows in self._forms.values()])
        groups = {("form", form): np.flatnonzero(form_of == form) for form in self._forms}
        return triplet_result(NAME, paraphrase > nearest, groups)
