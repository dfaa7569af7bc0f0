"""Similarity of drawn sentences to their rows, and the number of known false negatives among them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

_FORMS = ("cosine", "mer", "overlap")


@dataclass(frozen=True, kw_only=True)
class DrawReport:
    """Statistics of one mined column.

    Attributes:
        column: Name of the column.
        rows: Number of rows of the corpus.
        drawn: Number of rows with a sentence in this column.
        mean: Mean cosine, match error rate and lexical overlap, by name; {} if nothing was drawn.
        quantiles: Their 5th, 25th, 50th, 75th and 95th percentiles, by name.
        known: Number of drawn pairs with a known score.
        near_duplicates: Number of those that are near-duplicates by their score: false negatives, if the column holds
            negatives.
    """

    column: str
    rows: int
    drawn: int
    mean: dict[str, float]
    quantiles: dict[str, tuple[float, ...]]
    known: int
    near_duplicates: int


def draw_report(
    views: str | Path, *, pairs: Iterable[tuple[str, str, float]] = (), near: float = 4.0
) -> list[DrawReport]:
    """Return the statistics of every mined column (those with a recorded cosine) of a folder of built views.

    Args:
        views: A folder that `build_views` wrote.
        pairs: Pairs of sentences with a human score; case, white space and order are ignored.
        near: Minimum score of a near-duplicate (STS: 4 of 5, "mostly equivalent").
    """
    from opencse.foundation.parquet import parquet_schema, read_parquet
    from opencse.text.views.storage import built_columns

    scores = {_pair(a, b): score for a, b, score in pairs}
    parts = sorted(Path(views).glob("part-*.parquet"))
    names = set(parquet_schema(parts[0]).names)
    out = []
    for column in built_columns(parts[0]):
        if f"{column}.cosine" not in names:
            continue
        wanted = ["text", column, *(f"{column}.{form}" for form in _FORMS)]
        table = read_parquet(views, columns=wanted)
        values = {form: table[f"{column}.{form}"].drop_null().to_numpy() for form in _FORMS}
        found: list[float] = []
        if scores:
            drawn = zip(table["text"].to_pylist(), table[column].to_pylist(), strict=True)
            hits = (scores.get(_pair(a, b)) for a, b in drawn if b is not None)
            found = [score for score in hits if score is not None]
        any_drawn = len(values["cosine"]) > 0
        out.append(
            DrawReport(
                column=column,
                rows=table.num_rows,
                drawn=len(values["cosine"]),
                mean={form: float(np.mean(v)) for form, v in values.items()} if any_drawn else {},
                quantiles=_quantiles(values) if any_drawn else {},
                known=len(found),
                near_duplicates=sum(score >= near for score in found),
            )
        )
    return out


def _quantiles(values: Mapping[str, np.ndarray]) -> dict[str, tuple[float, ...]]:
    return {form: tuple(np.percentile(v, [5, 25, 50, 75, 95]).tolist()) for form, v in values.items()}


def _pair(a: str, b: str) -> frozenset[str]:
    return frozenset((" ".join(a.lower().split()), " ".join(b.lower().split())))
