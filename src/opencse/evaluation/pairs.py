"""Scored sentence pairs: the data of STS-like tasks, and how to read them from a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from opencse.evaluation.data_files import complete_rows
from opencse.evaluation.task import rows_sha256
from opencse.foundation.errors import OpencseError
from opencse.foundation.numbers import LEAST_PAIRS
from opencse.foundation.progress import note
from opencse.foundation.tables import parse_score, table_columns
from opencse.text import demo

ALIASES: Mapping[str, tuple[str, ...]] = {
    "sentence1": ("sentence1", "sentence_1", "sent1", "text1", "s1"),
    "sentence2": ("sentence2", "sentence_2", "sent2", "text2", "s2"),
    "score": ("score", "gold", "similarity", "similarity_score", "label"),
}
"""Header names accepted for each column, the preferred one first."""


@dataclass(frozen=True, kw_only=True, eq=False)
class ScoredPairs:
    """n sentence pairs with gold similarity scores.

    Args:
        name: Name of the set, such as `STS12`.
        sentence1: First sentences.
        sentence2: Second sentences.
        scores: Gold scores, on any scale.
        subsets: Subset of each pair, if there are several.
        text: Text variant: `senteval` (tokenised, mostly lower-cased), `raw`, or `given`.

    Raises:
        OpencseError: The columns differ in length, there is no pair, or a score is not finite.
    """

    name: str
    sentence1: Sequence[str]
    sentence2: Sequence[str]
    scores: Sequence[float]
    subsets: Sequence[str] | None = None
    text: str = "given"

    def __post_init__(self) -> None:
        lengths = {len(self.sentence1), len(self.sentence2), len(self.scores), len(self.subsets or self.scores)}
        if len(lengths) > 1:
            raise OpencseError(f"{self.name}: columns of unequal length {sorted(lengths)}", "Give one value per pair.")
        if not self.scores:
            raise OpencseError(f"{self.name} holds no sentence pair", "Give at least two scored pairs.")
        for row, value in enumerate(self.scores):
            if not math.isfinite(value):
                raise OpencseError(f"{self.name}: pair {row} has the score {value}", "Drop the pair or give a number.")

    def __len__(self) -> int:
        return len(self.scores)

    def texts(self) -> Iterator[str]:
        """Yield the sentences of all pairs."""
        yield from self.sentence1
        yield from self.sentence2

    def subset(self, name: str, rows: Sequence[int]) -> ScoredPairs:
        """Return the pairs of some rows as a set of their own."""
        return ScoredPairs(
            name=name,
            sentence1=[self.sentence1[row] for row in rows],
            sentence2=[self.sentence2[row] for row in rows],
            scores=[self.scores[row] for row in rows],
            text=self.text,
        )

    @property
    def gold(self) -> np.ndarray:
        """Gold scores, float64 (n,)."""
        return np.asarray(self.scores, dtype=np.float64)

    @cached_property
    def sha256(self) -> str:
        """Hash of the rows (sentences and scores) in order."""
        return rows_sha256(zip(self.sentence1, self.sentence2, map(float, self.scores), strict=True))


def read_pairs(path: str | Path) -> ScoredPairs:
    """Read scored pairs from `.csv`, `.tsv` or `.jsonl`, plain or `.gz`, named after the file.

    Columns `sentence1`, `sentence2`, `score` (or an alias in `ALIASES`), in any order among others; a column `subset`
    or `kind` is kept. CSV is quoted as usual (RFC 4180). **TSV has no quoting**: a quotation mark is a character.
    Blank lines are skipped.

    Args:
        path: The file, or `demo` for the pairs that come with the package.

    Raises:
        OpencseError: A column, a text or a score is missing, a score is not a number, a row has too few cells, the file
            is not valid UTF-8, or it has no rows; the message has the line number.
    """
    path = demo.pairs(path)
    names = table_columns(path)
    first, second, gold = (next((alias for alias in each if alias in names), each[0]) for each in ALIASES.values())
    subset = next((name for name in ("subset", "kind") if name in names), "")
    rows = list(complete_rows(path, first, second, others=[gold]))
    if len(rows) < LEAST_PAIRS:
        note(f"{path.name}: {len(rows)} pairs are too few for a correlation to say much (at least {LEAST_PAIRS})")
    return ScoredPairs(
        name=path.name.split(".")[0],
        sentence1=[row[first] for _, row in rows],
        sentence2=[row[second] for _, row in rows],
        scores=[parse_score(row[gold], path, line) for line, row in rows],
        subsets=[str(row.get(subset)) for _, row in rows] if subset else None,
    )
