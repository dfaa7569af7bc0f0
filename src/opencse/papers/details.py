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
from opencse.papers.entries import Entry, Listing, NeighbourQuery, PairGroup
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


def _distinct(*lists: Sequence[str]) -> list[str]:
    """Return the distinct texts of some lists, in order of first occurrence."""
    texts: dict[str, None] = {}
    for each in lists:
        texts.update(dict.fromkeys(each))
    return list(texts)


def find_neighbours(
    pairs: ScoredPairs, queries: Sequence[NeighbourQuery], encode: Encode
) -> Neighbours:
    """Search for each query among the sentences of the pairs; it does not find itself."""
    corpus = _distinct(pairs.sentence1, pairs.sentence2)
    texts = _distinct(corpus, [query.text for query in queries])
    embeddings = TextEmbeddings(texts, encode(texts))
    vectors = unit_rows(embeddings(corpus), np.float64)
    ranks = {}
    nearest = []
    for number, query in enumerate(queries, 1):
        own = query.text.strip().lower()
        cosines = vectors @ unit_rows(embeddings([query.text]), np.float64)[0]
        # A stable order, so that equal cosines rank alike on every machine.
        order = []
        for row in np.argsort(-cosines, kind="stable"):
            if corpus[row].strip().lower() != own:
                order.append(row)
        nearest.append([(corpus[row], float(cosines[row])) for row in order[:TOP]])
        if query.answer:
            row, side = query.answer
            sentences = pairs.sentence1 if side == 1 else pairs.sentence2
            found = [corpus[place] for place in order]
            ranks[number] = 1 + found.index(sentences[row])
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
    # The squared length of the sum holds all pairs, and each vector with itself, whose cosine is 1.
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
    for index, (label, projection) in enumerate(projections.items()):
        axes = panels[index]
        x, y = projection.points.T
        axes.scatter(x, y, s=2, alpha=0.4, color=f"C{index}", linewidths=0)
        title = f"{short(label, 26)}\nmean cosine {projection.mean_cosine:.2f}"
        axes.set_title(title, fontsize="small")
    if len(projections) % 2:
        panels[-1].set_visible(False)
        # Nothing is below the panel above the hidden one, so it shows its own numbers.
        above_gap = panels[-3] if rows > 1 else panels[0]
        above_gap.tick_params(labelbottom=True)
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
    texts: list[str] = []
    for pairs in groups.values():
        for first_text, second_text, _ in pairs:
            texts += [first_text, second_text]
    texts = _distinct(texts)
    embeddings = TextEmbeddings(texts, encode(texts))
    cosines = {}
    error_rates = {}
    for name, pairs in groups.items():
        first = [pair[0] for pair in pairs]
        second = [pair[1] for pair in pairs]
        cosines[name] = embeddings.paired(first, second)
        error_rates[name] = match_error_rate(first, second)
    return PairCosines(pairs=groups, cosines=cosines, error_rates=error_rates)


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
    return _chosen_by_score(group, data)


def _chosen_by_score(group: PairGroup, data: ProbeData) -> Sequence[Pair]:
    """Return the pairs within a group's limits of score and overlap, the highest scores first.

    Raises:
        OpencseError: There is no such pair.
    """
    least = group.least_score or 0.0
    chosen: dict[tuple[str, str], float] = {}
    for pairs in data.sts or data.pairs:
        # Scores of the STS tasks go from 0 to 5; limits mean nothing on another scale.
        on_scale = 1 < pairs.gold.max() <= 5
        wanted = not group.task or group.task == pairs.name or not data.sts
        if not on_scale or not wanted:
            continue
        overlap = lexical_overlap(pairs.sentence1, pairs.sentence2)
        scored = (pairs.gold >= least) & (pairs.gold < group.below_score)
        for row in np.flatnonzero(scored & (overlap < group.below_overlap)).tolist():
            chosen[pairs.sentence1[row], pairs.sentence2[row]] = pairs.scores[row]
    if not chosen:
        raise OpencseError(f"no pair has a score of at least {least:g} and so little overlap")
    ordered = sorted(chosen.items(), key=lambda item: -item[1])
    return [(first, second, score) for (first, second), score in ordered]


Cloud = tuple[np.ndarray, np.ndarray]
"""Cosines and match error rates of the pairs of a group."""

PAIRS = 2000
"""Pairs of each group: those of the first rows."""


def training_pairs(recipe: Recipe, rows: Corpus, limit: int = PAIRS) -> dict[str, list[Pair]]:
    """Return the `positive` and `negative` pairs of a system, as its losses name them.

    Without views of negatives, the negative of a sentence is the next sentence, as of a batch.
    """
    by_role: dict[str, list[Pair]] = {"positive": [], "negative": []}
    columns = {role: _columns(recipe, role) for role in by_role}
    anchor_views = [str(loss.anchor) for loss in recipe.losses if hasattr(loss, "anchor")]
    anchor = recipe.views[anchor_views[0]].text
    wanted = _distinct([anchor], columns["positive"], columns["negative"])
    previous = ""
    for row in rows.rows(wanted):
        cells = dict(zip(wanted, row, strict=True))
        sentence = cells[anchor]
        if not sentence:
            continue
        for role, names in columns.items():
            for name in names:
                text = cells[name]
                if text:
                    by_role[role].append((sentence, text, None))
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
        # A loss names one view (`positive`) or several (`positives`).
        named = [getattr(loss, role, "")]
        named.extend(getattr(loss, f"{role}s", ()))
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
    # A plot for each group of pairs, with a cloud for each model.
    plots: dict[str, dict[str, Cloud]] = {}
    lowest = 1.0
    for label, detail in details.items():
        for group in detail.pairs:
            cosines = detail.cosines[group]
            lowest = min(lowest, float(cosines.min()))
            plots.setdefault(group, {})[label] = (cosines, detail.error_rates[group])
    if entry.plot == "scatter" and len(plots) > 1:
        # And one of the first model, with a cloud for each group.
        first = next(iter(details))
        plots[first] = {group: clouds[first] for group, clouds in plots.items()}
    figures: dict[str, Draw] = {}
    for name, clouds in plots.items():
        suffix = _suffix(name) if len(plots) > 1 else ""
        if entry.plot == "scatter":
            figures[suffix] = partial(draw_scatter, clouds, lowest)
        else:
            histograms = {label: cosines for label, (cosines, _) in clouds.items()}
            figures[suffix] = partial(draw_histogram, histograms)
    return figures


def _suffix(name: str) -> str:
    """Return a name in the form that is added to that of a file."""
    letters = [letter if letter.isalnum() else "-" for letter in name.lower()]
    return f"-{''.join(letters)}"


def detail_listing(entry: Entry, details: Mapping[str, Any]) -> Listing:
    """Return the texts that an entry shows, with a column for each model.

    Of each query they are the nearest sentences; of each group the first pairs, with human score
    and cosine, as known.
    """
    if entry.kind == "neighbours":
        return _neighbour_rows(entry, details)
    if not entry.texts:
        return ()
    cosines: dict[tuple[str, ...], dict[str, str]] = {}
    for label, detail in details.items():
        for name, pairs in detail.pairs.items():
            for pair, cosine in zip(pairs[: entry.texts], detail.cosines[name], strict=False):
                first, second, score = pair
                human = "" if score is None else f"{score:g}"
                cells = cosines.setdefault((name, first, second, human), {})
                cells[label] = f"{cosine:.4f}"
    if not cosines:
        return ()
    rows = [("", "sentence", "compared with", "human score", *details)]
    for key, cells in cosines.items():
        of_models = [cells.get(label, "") for label in details]
        rows.append((*key, *of_models))
    return tuple(rows)


def _neighbour_rows(entry: Entry, details: Mapping[str, Any]) -> Listing:
    """Return the nearest sentences of each query, with a column for each model."""
    rows = [("query", "rank", *details)]
    for index, query in enumerate(entry.queries):
        for rank in range(TOP):
            nearest = []
            for detail in details.values():
                text, cosine = detail.nearest[index][rank]
                nearest.append(f"{text} ({cosine:.3f})")
            rows.append((query.text, str(rank + 1), *nearest))
    return tuple(rows)
