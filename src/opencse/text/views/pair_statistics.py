"""Distributions of the surface and semantic similarity of built pairs, to compare with DebCSE's Tables 1 and 4."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opencse.text.surface import lexical_overlap, match_error_rate

PUBLISHED = {
    "supervised NLI": (0.38, 0.28),
    "SimCSE (dropout, in-batch)": (1.0, 0.09),
    "DebCSE": (0.56, 0.21),
}
"""Mean lexical overlap of positive and of negative pairs (DebCSE Tables 1 and 4)."""


@dataclass(frozen=True)
class Distribution:
    """Mean of a value over many pairs, and counts in ten equal bins that end at 1."""

    mean: float
    counts: tuple[int, ...]

    @classmethod
    def of(cls, values: np.ndarray, low: float = 0.0) -> Distribution | None:
        """Return the distribution of n values over [low, 1]; None for no value."""
        if not len(values):
            return None
        counts, _ = np.histogram(np.clip(values, low, 1), np.linspace(low, 1, 11))
        return cls(float(values.mean()), tuple(counts.tolist()))

    def bar_chart(self) -> str:
        """Return the counts as block characters."""
        return "".join(" ▁▂▃▄▅▆▇█"[-(-8 * count // (max(self.counts) or 1))] for count in self.counts)


@dataclass(frozen=True, kw_only=True)
class ColumnStatistics:
    """Distributions for the pairs of each sentence and its view in one column.

    Attributes:
        column: Name of the column; "another row" for pairs of random sentences, as in-batch negatives are.
        rows: Number of sentences.
        nulls: Number of sentences without a view.
        rules: Number of applications of each rule, the most frequent first.
        overlap: Lexical overlap.
        error_rate: Match error rate.
        cosine: Cosine as recorded for mined sentences; None without.
    """

    column: str
    rows: int
    nulls: int
    rules: dict[str, int]
    overlap: Distribution | None
    error_rate: Distribution | None
    cosine: Distribution | None


def pair_statistics(views: str | Path, *, limit: int = 20_000, seed: int = 0) -> Iterator[ColumnStatistics]:
    """Yield the distributions for every column of a folder of built views.

    Args:
        views: A folder that `build_views` wrote, or one of its files.
        limit: Maximum number of rows; a larger folder is sampled at random.
        seed: Seed of this sample and of the random pairs.
    """
    from opencse.foundation.parquet import parquet_schema, read_parquet
    from opencse.text.views.storage import built_columns, read_header

    first = min(Path(views).glob("part-*.parquet"), default=Path(views))
    read_header(first)  # raises if it is not a file of built views
    columns, present = built_columns(first), parquet_schema(first).names
    recorded = [f"{name}.cosine" for name in columns if f"{name}.cosine" in present]
    table = read_parquet(views, columns=["text", *columns, *(f"{name}.rule" for name in columns), *recorded])
    rng = np.random.default_rng(seed)
    if table.num_rows > limit:
        table = table.take(np.sort(rng.choice(table.num_rows, limit, replace=False)))
    texts = table["text"].to_pylist()

    def describe(name: str, others: Sequence[str | None], rules: Sequence[str], known: np.ndarray) -> ColumnStatistics:
        valid = [i for i, other in enumerate(others) if other is not None]
        a, b = [texts[i] for i in valid], [str(others[i]) for i in valid]
        return ColumnStatistics(
            column=name,
            rows=len(texts),
            nulls=len(texts) - len(valid),
            rules=dict(Counter(rule if not rule.startswith("row ") else "row" for rule in rules).most_common()),
            overlap=Distribution.of(lexical_overlap(a, b)),
            error_rate=Distribution.of(match_error_rate(a, b)),
            cosine=Distribution.of(known, low=-1.0),
        )

    for name in columns:
        cosine = f"{name}.cosine"
        known = table[cosine].drop_null().to_numpy() if cosine in recorded else np.zeros(0)
        yield describe(name, table[name].to_pylist(), table[f"{name}.rule"].to_pylist(), known)
    if len(texts) > 1:
        shift = (np.arange(len(texts)) + rng.integers(1, len(texts), len(texts))) % len(texts)
        yield describe("another row", [texts[i] for i in shift], [], np.zeros(0))
