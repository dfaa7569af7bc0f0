"""Measurements of a model beside its scores, and the figures and texts of a reproduction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from opencse.commands.reports.figures import WIDTH, Draw, draw_histogram, draw_scatter, short
from opencse.commands.reproduction.entries import Entry, Query
from opencse.commands.reproduction.pairs import Listing, PairCosines, list_pairs
from opencse.evaluation import Encode, ScoredPairs, TextEmbeddings
from opencse.foundation.numbers import unit_rows

if TYPE_CHECKING:
    from matplotlib.figure import Figure

TOP = 3
"""Nearest sentences that are listed."""


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """The nearest sentences that one model finds for each query, and the rank of its answer by query number, from 1."""

    ranks: Mapping[int, int]
    nearest: Sequence[Sequence[tuple[str, float]]]

    def scores(self) -> dict[str, float]:
        """Return the ranks by column."""
        return {f"query {number}: rank": float(rank) for number, rank in self.ranks.items()}


def find_neighbours(pairs: ScoredPairs, queries: Sequence[Query], encode: Encode) -> Neighbours:
    """Search for each query among the sentences of the pairs; it does not find itself."""
    corpus = list(dict.fromkeys([*pairs.sentence1, *pairs.sentence2]))
    texts = list(dict.fromkeys([*corpus, *(query.text for query in queries)]))
    embeddings = TextEmbeddings(texts, encode(texts))
    vectors = unit_rows(embeddings(corpus), np.float64)
    ranks, nearest = {}, []
    for number, query in enumerate(queries, 1):
        own = query.text.strip().lower()
        cosines = vectors @ unit_rows(embeddings([query.text]), np.float64)[0]
        order = [row for row in np.argsort(-cosines, kind="stable") if corpus[row].strip().lower() != own]
        nearest.append([(corpus[row], float(cosines[row])) for row in order[:TOP]])
        if query.answer:
            row, side = query.answer
            answer = (pairs.sentence1, pairs.sentence2)[side - 1][row]
            ranks[number] = 1 + [corpus[each] for each in order].index(answer)
    return Neighbours(ranks=ranks, nearest=nearest)


def list_neighbours(found: Mapping[str, Neighbours], queries: Sequence[Query]) -> Listing:
    """Return the nearest sentences of each query, a column for each model."""
    rows = [("query", "rank", *found)]
    for index, query in enumerate(queries):
        for rank in range(TOP):
            texts = [
                f"{text} ({cosine:.3f})" for text, cosine in (each.nearest[index][rank] for each in found.values())
            ]
            rows.append((query.text, str(rank + 1), *texts))
    return tuple(rows)


@dataclass(frozen=True, kw_only=True, eq=False)
class Projection:
    """The first two principal components of n unit vectors, and the share of the variance that they hold.

    `mean_cosine` is that of two distinct sentences; 1 is a single direction.
    """

    points: np.ndarray
    share: float
    mean_cosine: float

    def scores(self) -> dict[str, float]:
        """Return the measures by column."""
        return {"mean cosine": self.mean_cosine, "variance shown, %": 100 * self.share}


def project(vectors: np.ndarray) -> Projection:
    """Project n vectors of shape (n, d), made unit vectors, on their first two principal components."""
    unit = unit_rows(vectors, np.float64)
    n = len(unit)
    left, values, _ = np.linalg.svd(unit - unit.mean(axis=0), full_matrices=False)
    cosines = (np.linalg.norm(unit.sum(axis=0)) ** 2 - n) / (n * (n - 1))
    return Projection(
        points=left[:, :2] * values[:2],
        share=float((values[:2] ** 2).sum() / (values**2).sum()),
        mean_cosine=float(cosines),
    )


def draw_projections(projections: Mapping[str, Projection]) -> Figure:
    """Draw the sentences of each model in its first two principal components, all on one scale (BYOP Figure 1)."""
    from matplotlib.figure import Figure

    rows = -(-len(projections) // 2)
    plot = Figure(figsize=(WIDTH, 2.3 * rows), layout="constrained")
    panels = list(plot.subplots(rows, 2, squeeze=False, sharex=True, sharey=True).flat)
    for index, (axes, (label, each)) in enumerate(zip(panels, projections.items(), strict=False)):
        axes.scatter(*each.points.T, s=2, alpha=0.4, color=f"C{index}", linewidths=0)
        axes.set_title(f"{short(label, 26)}\nmean cosine {each.mean_cosine:.2f}", fontsize="small")
    if len(projections) % 2:
        panels[-1].set_visible(False)
        panels[-3 if rows > 1 else 0].tick_params(labelbottom=True)  # nothing is below it
    return plot


Detail = PairCosines | Neighbours | Projection
"""The measurement of one model; `scores()` returns its part of the table."""


def detail_figures(entry: Entry, details: Mapping[str, Any]) -> dict[str, Draw]:
    """Return the figures of an entry, by what is added to its name, from what each model gave, by label."""
    if details and entry.kind == "projection":
        return {"": partial(draw_projections, details)}
    if not details or not entry.plot:
        return {}
    points: dict[str, dict[str, tuple[np.ndarray, np.ndarray]]] = {  # by label and group
        label: {group: (each.cosines[group], each.error_rates[group]) for group in each.pairs}
        for label, each in details.items()
    }
    groups = list(dict.fromkeys(group for each in points.values() for group in each))
    plots = {group: {label: each[group] for label, each in points.items() if group in each} for group in groups}
    if entry.plot == "scatter" and len(groups) > 1:  # all groups of the first label, too
        label, first = next(iter(points.items()))
        plots[label] = {group: first[group] for group in groups}
    lowest = min(float(cosines.min()) for each in points.values() for cosines, _ in each.values())
    found: dict[str, Draw] = {}
    for name, clouds in plots.items():
        suffix = "".join(letter if letter.isalnum() else "-" for letter in f"-{name}".lower()) if len(plots) > 1 else ""
        cosines = {label: each for label, (each, _) in clouds.items()}
        scatter = entry.plot == "scatter"
        found[suffix] = partial(draw_scatter, clouds, lowest) if scatter else partial(draw_histogram, cosines)
    return found


def detail_listing(entry: Entry, details: Mapping[str, Any]) -> Listing:
    """Return the texts that an entry shows."""
    if entry.kind == "neighbours":
        return list_neighbours(details, entry.queries)
    return list_pairs(details, entry.texts) if details and entry.texts else ()
