"""Triplets: is a text nearer to its paraphrase than to its contradiction?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from opencse.evaluation.data_files import complete_rows
from opencse.evaluation.sts import paired_cosine
from opencse.evaluation.task import TaskResult, TextEmbeddings, rows_sha256
from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import ASSETS
from opencse.foundation.tables import table_columns

DEVELOPMENT_SETS = ("meaning", "search", "roles")
"""The written development sets that come with the package (docs/data/development-sets.md)."""

DEVELOPMENT_TASKS = tuple(f"dev-{name}" for name in DEVELOPMENT_SETS)
"""The tasks on them."""

_TEXTS = ("anchor", "positive", "negative")


@dataclass(frozen=True, kw_only=True)
class Triplet:
    """A text, its paraphrase, and its contradiction.

    Attributes:
        id: Identifier within the set.
        anchor: The text; for a search, the query.
        positive: A paraphrase, or the passage that answers the query.
        negative: A contradiction, mostly in nearly the same words.
        groups: Group of the triplet, by column: `{"grade": "near", "kind": "verb"}`.
    """

    id: str
    anchor: str
    positive: str
    negative: str
    groups: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class TripletSet:
    """A task: the share of triplets whose positive has the higher cosine with the anchor; a tie counts as wrong.

    Metrics, in percent: `accuracy` (the main one), and for each group `column: value`. Their counts are in
    `details["rows"]`. All triplets have the same grouping columns.

    Attributes:
        name: Name in tables and files.
        triplets: The rows, in the order of the file.
    """

    name: str
    triplets: tuple[Triplet, ...]

    def groups(self) -> dict[str, np.ndarray]:
        """Return the rows (int64) of every group `column: value`, by column and in order of first occurrence."""
        found: dict[str, list[int]] = {}
        for column in self.triplets[0].groups:
            for row, triplet in enumerate(self.triplets):
                found.setdefault(f"{column}: {triplet.groups[column]}", []).append(row)
        return {group: np.array(rows, dtype=np.int64) for group, rows in found.items()}

    def texts(self) -> Iterator[str]:
        """Yield all three texts of every row."""
        for triplet in self.triplets:
            yield from (triplet.anchor, triplet.positive, triplet.negative)

    def margins(self, embeddings: TextEmbeddings) -> np.ndarray:
        """Return the cosine with the positive minus that with the negative, (n,); above 0 is right."""
        anchor, positive, negative = (
            embeddings([getattr(triplet, side) for triplet in self.triplets]) for side in _TEXTS
        )
        return paired_cosine(anchor, positive) - paired_cosine(anchor, negative)

    def score(self, embeddings: TextEmbeddings) -> TaskResult:
        """Return the share of triplets in the right order, over all and in each group."""
        right = self.margins(embeddings) > 0
        groups = self.groups()
        metrics: dict[str, float | None] = {"accuracy": 100 * float(right.mean())}
        metrics |= {group: 100 * float(right[rows].mean()) for group, rows in groups.items()}
        return TaskResult(
            task=self.name,
            main="accuracy",
            metrics=metrics,
            rows=len(right),
            data_sha256=rows_sha256(
                [[[t.id, t.anchor, t.positive, t.negative, dict(t.groups)] for t in self.triplets]]
            ),
            details={
                "text": "given",
                "similarity": "cosine",
                "rows": {group: len(rows) for group, rows in groups.items()},
            },
        )


def development_set(name: str) -> TripletSet:
    """Return one of the written sets of `DEVELOPMENT_SETS`.

    Example:
        >>> triplet = development_set("meaning").triplets[0]
        >>> triplet.groups["grade"]
        'near'
    """
    if name not in DEVELOPMENT_SETS:
        raise OpencseError(f"there is no development set {name!r}", f"Known: {', '.join(DEVELOPMENT_SETS)}.")
    return read_triplets(ASSETS / "development" / f"{name}.tsv")


def load_development() -> list[TripletSet]:
    """Return the tasks of `DEVELOPMENT_TASKS`: one on each written set."""
    return [replace(development_set(name), name=f"dev-{name}") for name in DEVELOPMENT_SETS]


def read_triplets(path: str | Path) -> TripletSet:
    """Read triplets from a `.tsv`, `.csv` or `.jsonl` file, plain or `.gz`.

    Args:
        path: A table with the columns `anchor`, `positive` and `negative`. A column `id` names the rows (by default
            their line); every other column groups them.

    Raises:
        OpencseError: The file cannot be read, a column or a text is missing, two rows have one id, or a positive or
            negative repeats its anchor or the other; the message names the line.
    """
    path = Path(path)
    columns = table_columns(path)
    triplets: dict[str, Triplet] = {}
    for line, row in complete_rows(path, *_TEXTS, others=[name for name in columns if name not in _TEXTS]):
        cells = {name: str(row[name]).strip() for name in columns}
        anchor, positive, negative = (cells.pop(name) for name in _TEXTS)
        name = cells.pop("id", f"line {line}")
        if name in triplets:
            raise OpencseError(f"{path}, line {line}: the id {name!r} occurs twice", "Rename one.")
        if len({anchor, positive, negative}) < 3:
            raise OpencseError(f"{path}, line {line}: two of the three texts are equal", "Drop the row.")
        triplets[name] = Triplet(id=name, anchor=anchor, positive=positive, negative=negative, groups=cells)
    return TripletSet(name=path.name.partition(".")[0], triplets=tuple(triplets.values()))
