"""Distributions of the surface and semantic similarity of built pairs, to compare with DebCSE's Tables 1 and 4."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opencse.foundation.unit_rows import unit_rows
from opencse.text.surface import lexical_overlap, match_error_rate

PUBLISHED = {
    "supervised NLI": (0.38, 0.28),
    "SimCSE (dropout, in-batch)": (1.0, 0.09),
    "DebCSE": (0.56, 0.21),
}
"""Mean lexical overlap of positive and of negative pairs (DebCSE Tables 1 and 4)."""

BINS = np.linspace(0, 1, 11)
COSINE_BINS = np.linspace(-1, 1, 11)
Encode = Callable[[Sequence[str]], np.ndarray]


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """Distribution of one value over many pairs: mean, quartiles, and counts in ten equal bins over [low, high]."""

    mean: float
    quartiles: tuple[float, float, float]
    counts: tuple[int, ...]
    low: float
    high: float


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
        cosine: Cosine similarity by an encoder; None without an encoder.
    """

    column: str
    rows: int
    nulls: int
    rules: dict[str, int]
    overlap: Distribution | None
    error_rate: Distribution | None
    cosine: Distribution | None


def pair_statistics(
    views: str | Path, *, encode: Encode | None = None, limit: int = 20_000, seed: int = 0
) -> list[ColumnStatistics]:
    """Return the distributions for every column of a folder of built views.

    Args:
        views: A folder that `build_views` wrote, or one of its files.
        encode: Maps n texts to a matrix (n, d), for cosines.
        limit: Maximum number of rows; a larger folder is sampled at random.
        seed: Seed of this sample and of the random pairs.
    """
    from opencse.foundation.parquet import read_parquet
    from opencse.text.views.storage import built_columns, read_header

    first = min(Path(views).glob("part-*.parquet"), default=Path(views))
    read_header(first)  # raises if it is not a file of built views
    columns = built_columns(first)
    table = read_parquet(views, columns=["text", *columns, *(f"{name}.rule" for name in columns)])
    rng = np.random.default_rng(seed)
    if table.num_rows > limit:
        table = table.take(np.sort(rng.choice(table.num_rows, limit, replace=False)))
    texts = table["text"].to_pylist()
    vectors = None if encode is None else unit_rows(encode(texts))
    found = [
        _describe(name, texts, table[name].to_pylist(), table[f"{name}.rule"].to_pylist(), vectors, encode)
        for name in columns
    ]
    if len(texts) > 1:
        shift = (np.arange(len(texts)) + rng.integers(1, len(texts), len(texts))) % len(texts)
        found.append(_describe("another row", texts, [texts[i] for i in shift], [], vectors, encode))
    return found


def _describe(
    name: str,
    texts: Sequence[str],
    others: Sequence[str | None],
    rules: Sequence[str],
    vectors: np.ndarray | None,
    encode: Encode | None,
) -> ColumnStatistics:
    valid = [i for i, other in enumerate(others) if other is not None]
    a, b = [texts[i] for i in valid], [str(others[i]) for i in valid]
    cosine = None
    if vectors is not None and encode is not None and valid:
        cosine = _distribution((vectors[valid] * unit_rows(encode(b))).sum(axis=1), COSINE_BINS)
    return ColumnStatistics(
        column=name,
        rows=len(texts),
        nulls=len(texts) - len(valid),
        rules=dict(Counter(rule if not rule.startswith("row ") else "row" for rule in rules).most_common()),
        overlap=_distribution(lexical_overlap(a, b), BINS) if valid else None,
        error_rate=_distribution(match_error_rate(a, b), BINS) if valid else None,
        cosine=cosine,
    )


def _distribution(values: np.ndarray, bins: np.ndarray) -> Distribution:
    low, high = float(bins[0]), float(bins[-1])
    counts, _ = np.histogram(np.clip(values, low, high), bins)
    quartiles = np.percentile(values, [25, 50, 75])
    return Distribution(
        mean=float(values.mean()),
        quartiles=(float(quartiles[0]), float(quartiles[1]), float(quartiles[2])),
        counts=tuple(counts.tolist()),
        low=low,
        high=high,
    )


def bar_chart(distribution: Distribution) -> str:
    """Return the ten counts as a bar chart of block characters."""
    highest = max(distribution.counts) or 1
    return "".join(" ▁▂▃▄▅▆▇█"[-(-8 * count // highest)] for count in distribution.counts)
