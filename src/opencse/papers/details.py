"""Measurements of a model next to its scores: pairs, neighbours and projections, and how they are drawn and listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opencse.evaluation import Encode, ScoredPairs, TextEmbeddings, load_sts
from opencse.evaluation.probes import ProbeData
from opencse.foundation.errors import OpencseError
from opencse.foundation.figures import WIDTH, Draw, draw_histogram, draw_scatter, short
from opencse.foundation.numbers import unit_rows
from opencse.papers.entries import Entry, Listing, PairGroup, Query
from opencse.papers.scores import EntryColumn, Missing
from opencse.recipes import Recipe
from opencse.text.corpus import Corpus
from opencse.text.surface import lexical_overlap, match_error_rate

if TYPE_CHECKING:
    from matplotlib.figure import Figure


Pair = tuple[str, str, float | None]
"""A sentence pair with its human score, if there is one."""

TOP = 3
"""Nearest sentences that are listed."""


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """The nearest sentences that one model finds for each query, and the rank of its answer by query number, from 1."""

    ranks: Mapping[int, int]
    nearest: Sequence[Sequence[tuple[str, float]]]

    def value(self, column: EntryColumn) -> float | Missing:
        """Return the rank of a query's answer; the subject of the column is `query NUMBER`."""
        for number, rank in self.ranks.items():
            if column.subject == f"query {number}":
                return float(rank)
        return Missing("no answer is known")


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
        order = [
            row for row in np.argsort(-cosines, kind="stable") if corpus[row].strip().lower() != own
        ]
        nearest.append([(corpus[row], float(cosines[row])) for row in order[:TOP]])
        if query.answer:
            row, side = query.answer
            answer = (pairs.sentence1, pairs.sentence2)[side - 1][row]
            ranks[number] = 1 + [corpus[place] for place in order].index(answer)
    return Neighbours(ranks=ranks, nearest=nearest)


@dataclass(frozen=True, kw_only=True, eq=False)
class Projection:
    """The first two principal components of n unit vectors, and the share of the variance that they hold.

    `mean_cosine` is that of two distinct sentences; 1 is a single direction.
    """

    points: np.ndarray
    share: float
    mean_cosine: float

    def value(self, column: EntryColumn) -> float | Missing:
        """Return the mean cosine, or the share of the variance in percent."""
        if column.title == "mean cosine":
            return self.mean_cosine
        return 100 * self.share


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
    for index, (axes, (label, projection)) in enumerate(
        zip(panels, projections.items(), strict=False)
    ):
        axes.scatter(*projection.points.T, s=2, alpha=0.4, color=f"C{index}", linewidths=0)
        axes.set_title(
            f"{short(label, 26)}\nmean cosine {projection.mean_cosine:.2f}", fontsize="small"
        )
    if len(projections) % 2:
        panels[-1].set_visible(False)
        panels[-3 if rows > 1 else 0].tick_params(labelbottom=True)  # nothing is below it
    return plot


@dataclass(frozen=True, kw_only=True, eq=False)
class PairCosines:
    """Cosines under one model, and match error rates (the share of words that changed), of groups of pairs."""

    pairs: Mapping[str, Sequence[Pair]]
    cosines: Mapping[str, np.ndarray]
    error_rates: Mapping[str, np.ndarray]

    def value(self, column: EntryColumn) -> float | Missing:
        """Return a quantity of a group: cosine, deviation, error rate, overlap or count."""
        pairs = self.pairs.get(column.subject)
        if pairs is None:
            return Missing(f"no pairs {column.subject!r}")
        cosines = self.cosines[column.subject]
        if column.quantity == "count":
            return float(len(cosines))
        if column.quantity == "cosine":
            return float(cosines.mean())
        if column.quantity == "deviation":
            return float(cosines.std(ddof=1)) if len(cosines) > 1 else 0.0
        if column.quantity == "error rate":
            return float(self.error_rates[column.subject].mean())
        if column.quantity == "overlap":
            first, second, _ = zip(*pairs, strict=True)
            return float(lexical_overlap(first, second).mean())
        raise ValueError(f"{column.title}: pairs have no such quantity")


def pair_cosines(groups: Mapping[str, Sequence[Pair]], encode: Encode) -> PairCosines:
    """Measure groups of pairs by the vectors of their sentences."""
    texts = list(
        dict.fromkeys(
            text
            for pairs in groups.values()
            for first, second, _ in pairs
            for text in (first, second)
        )
    )
    embeddings = TextEmbeddings(texts, encode(texts))
    sides = {
        name: ([a for a, _, _ in pairs], [b for _, b, _ in pairs]) for name, pairs in groups.items()
    }
    return PairCosines(
        pairs=groups,
        cosines={name: embeddings.paired(first, second) for name, (first, second) in sides.items()},
        error_rates={
            name: match_error_rate(first, second) for name, (first, second) in sides.items()
        },
    )


def load_group(
    group: PairGroup, data: ProbeData, source: str | Path | None = None
) -> Sequence[Pair]:
    """Return the pairs of a group, each distinct pair once; scored pairs with the highest scores first.

    Raises:
        OpencseError: There is no such pair.
    """
    if group.versions:
        return [(group.sentence, version, None) for version in group.versions]
    if group.transformation:
        if data.sentences is None or group.transformation not in data.sentences.kinds:
            raise OpencseError(f"no sentences with the transformation {group.transformation!r}")
        _, first, second = data.sentences.pairs(group.transformation)
        return [(a, b, None) for a, b in zip(first, second, strict=True)]
    if group.place is not None:
        task, split, row = group.place
        if source is None:
            raise OpencseError(f"the group {group.name} is a pair of {task}", "Pass --data.")
        (pairs,) = load_sts(source, tasks=[task], split=split)
        return [(pairs.sentence1[row], pairs.sentence2[row], pairs.scores[row])]
    chosen, least = dict[tuple[str, str], float](), group.least_score or 0.0
    for pairs in data.sts or data.pairs:
        if 1 < pairs.gold.max() <= 5 and (
            not group.task or group.task == pairs.name or not data.sts
        ):
            overlap = lexical_overlap(pairs.sentence1, pairs.sentence2)
            scored = (pairs.gold >= least) & (pairs.gold < group.below_score)
            for row in np.flatnonzero(scored & (overlap < group.below_overlap)).tolist():
                chosen[pairs.sentence1[row], pairs.sentence2[row]] = pairs.scores[row]
    if not chosen:
        raise OpencseError(f"no pair has a score of at least {least:g} and so little overlap")
    return [(*pair, chosen[pair]) for pair in sorted(chosen, key=lambda pair: -chosen[pair])]


PAIRS = 2000
"""Pairs of each group: those of the first rows."""


def training_pairs(recipe: Recipe, rows: Corpus, limit: int = PAIRS) -> dict[str, list[Pair]]:
    """Return the `positive` and `negative` pairs of a system, as its losses name them.

    Without views of negatives, the negative of a sentence is the next sentence, as of a batch.
    """
    by_role: dict[str, list[Pair]] = {"positive": [], "negative": []}
    columns = {role: _columns(recipe, role) for role in by_role}
    anchor = recipe.views[
        next(str(loss.anchor) for loss in recipe.losses if hasattr(loss, "anchor"))
    ].text
    wanted = list(dict.fromkeys([anchor, *columns["positive"], *columns["negative"]]))
    previous = ""
    for row in rows.rows(wanted):
        cells = dict(zip(wanted, row, strict=True))
        sentence = cells[anchor]
        if not sentence:
            continue
        for role, names in columns.items():
            by_role[role] += [(sentence, text, None) for name in names if (text := cells[name])]
        if not columns["negative"] and previous:
            by_role["negative"].append((previous, sentence, None))
        previous = sentence
        if all(len(pairs) >= limit for pairs in by_role.values()):
            break
    return {role: pairs[:limit] for role, pairs in by_role.items() if pairs}


def _columns(recipe: Recipe, role: str) -> list[str]:
    """Return the text columns of a role, `positive` or `negative`, in all losses."""
    views = []
    for loss in recipe.losses:
        named = [getattr(loss, role, ""), *getattr(loss, f"{role}s", ())]
        views += [view for view in named if view in recipe.views]
    return list(dict.fromkeys(recipe.views[view].text for view in views))


Detail = PairCosines | Neighbours | Projection
"""The measurement of one model, which is drawn and listed next to its part of the table."""


def detail_figures(entry: Entry, details: Mapping[str, Any]) -> dict[str, Draw]:
    """Return the figures of an entry, by what is added to its name, from what each model gave, by label."""
    if details and entry.kind == "projection":
        return {"": partial(draw_projections, details)}
    if not details or not entry.plot:
        return {}
    points: dict[str, dict[str, tuple[np.ndarray, np.ndarray]]] = {  # by label and group
        label: {group: (detail.cosines[group], detail.error_rates[group]) for group in detail.pairs}
        for label, detail in details.items()
    }
    groups = list(dict.fromkeys(group for parts in points.values() for group in parts))
    plots = {
        group: {label: parts[group] for label, parts in points.items() if group in parts}
        for group in groups
    }
    if entry.plot == "scatter" and len(groups) > 1:  # all groups of the first label, too
        label, first = next(iter(points.items()))
        plots[label] = {group: first[group] for group in groups}
    lowest = min(float(cosines.min()) for parts in points.values() for cosines, _ in parts.values())
    figures: dict[str, Draw] = {}
    for name, clouds in plots.items():
        suffix = (
            "".join(letter if letter.isalnum() else "-" for letter in f"-{name}".lower())
            if len(plots) > 1
            else ""
        )
        cosines = {label: values for label, (values, _) in clouds.items()}
        scatter = entry.plot == "scatter"
        figures[suffix] = (
            partial(draw_scatter, clouds, lowest) if scatter else partial(draw_histogram, cosines)
        )
    return figures


def detail_listing(entry: Entry, details: Mapping[str, Any]) -> Listing:
    """Return the texts that an entry shows, with a column for each model.

    Of each query they are the nearest sentences; of each group the first pairs, with human score
    and cosine, as known.
    """
    if entry.kind == "neighbours":
        rows = [("query", "rank", *details)]
        for index, query in enumerate(entry.queries):
            for rank in range(TOP):
                nearest = (detail.nearest[index][rank] for detail in details.values())
                rows.append(
                    (
                        query.text,
                        str(rank + 1),
                        *(f"{text} ({cosine:.3f})" for text, cosine in nearest),
                    )
                )
        return tuple(rows)
    cosines: dict[tuple[str, ...], dict[str, str]] = {}
    for label, detail in details.items() if entry.texts else ():
        for name, pairs in detail.pairs.items():
            for (first, second, score), cosine in zip(
                pairs[: entry.texts], detail.cosines[name], strict=False
            ):
                key = (name, first, second, "" if score is None else f"{score:g}")
                cosines.setdefault(key, {})[label] = f"{cosine:.4f}"
    if not cosines:
        return ()
    rows = [(*key, *(cells.get(label, "") for label in details)) for key, cells in cosines.items()]
    return (("", "sentence", "compared with", "human score", *details), *rows)
