"""The figures of a probe report, with their titles and captions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from operator import sub
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from opencse.commands.reports.drawing import LEGEND_ROW, MODELS, Draw, Palette, can_draw, figure, legend
from opencse.commands.reports.text import short, shown
from opencse.evaluation.probes import ProbeScores
from opencse.evaluation.probes.scored_pairs import SPLITS
from opencse.training.strength import Scores, StrengthCurve

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MARKERS = "osD^vP"
_OPPOSED = ("paraphrase", "negation")
Models = Mapping[str, ProbeScores]
Values = Sequence[float] | np.ndarray
Curve = Sequence[tuple[float, float]]
"""Step, or another number, and value; of a repeated step, the last counts."""


class Picture(NamedTuple):
    """A figure with its title and caption; `name` is its file name without ending."""

    name: str
    title: str
    caption: str
    draw: Draw


def pictures(models: Models) -> Iterator[Picture]:
    """Yield the figures for which the first of the models has data, the most informative first.

    Without matplotlib there are none.
    """
    if not can_draw():
        return
    first = next(iter(models.values()))
    if first.transformations is not None and first.transformations.kinds:
        yield Picture(
            "transformations",
            "Which transformations does the model take for the same meaning?",
            "Mean cosine of a sentence with each transformation, 95 % interval. The paraphrase should be far to the "
            "right of the negation.",
            partial(means, models),
        )
        clouds = {
            name: {k.kind: (k.cosines, k.error_rates) for k in each.transformations.kinds if k.kind in _OPPOSED}
            for name, each in models.items()
            if each.transformations is not None
        }
        lowest = min((min(cosines) for kinds in clouds.values() for cosines, _ in kinds.values()), default=0.0)
        for index, name in enumerate(models, 1):
            if clouds.get(name):
                yield Picture(
                    f"wording-{index}",
                    f"Similarity against wording: {shown(name, 40)}",
                    "Each mark is one sentence. If only meaning counted, paraphrases would lie to the right and "
                    "negations to the left, at any height.",
                    partial(scatter, clouds[name], lowest),
                )
    if first.splits is not None:
        yield Picture(
            "splits",
            "Agreement with people, where wording helps and where it misleads",
            "Short lines are good: wording then matters little. Bars: unsupervised SimCSE as published.",
            partial(splits, models),
        )
    if first.suppression is not None and first.suppression.cosines:
        found = {name: each.suppression for name, each in models.items()}
        counts = {name: counted(each.cosines) for name, each in found.items() if each and each.cosines}
        yield Picture(
            "suppression",
            "Same meaning, different words",
            "Cosines of pairs that people score 4 or more of 5 though they share less than 60 % of their words. A "
            "narrow peak at the right is good.",
            partial(histogram, counts, "cosine of the pair"),
        )
    if first.length is not None:
        yield Picture(
            "length",
            "Does length matter?",
            "Mean cosine beyond the prediction from human scores, by difference of length. A flat line at 0 means no "
            "bias.",
            partial(length, models),
        )
    if first.training_pairs:
        overlaps = {f"{kind.column} ({kind.role})": kind.overlap_counts for kind in first.training_pairs}
        yield Picture(
            "pairs-overlap",
            "Training pairs: wording",
            "Positives that share few words and negatives that share many teach the most.",
            partial(histogram, overlaps, "lexical overlap of the pair"),
        )
        for index, (name, scores) in enumerate(models.items(), 1):
            cosines = {f"{kind.column} ({kind.role})": kind.cosine_counts for kind in scores.training_pairs}
            yield Picture(
                f"pairs-cosine-{index}",
                f"Training pairs: meaning by {shown(name, 40)}",
                "Cosines of positive and of negative pairs.",
                partial(histogram, cosines, "cosine of the pair"),
            )


def splits(models: Models, palette: Palette) -> Figure:
    """Draw the Spearman correlation on both parts of each set, with published SimCSE (OssCSE Tables 3 and 6)."""
    results = {name: each.splits for name, each in models.items() if each.splits is not None}
    names = [each.name for each in next(iter(results.values())).sets]
    plot, axes = figure(palette, 1.2 + 0.34 * len(names) + 0.2 * (len(results) + 1))
    rows = np.arange(len(names), dtype=np.float64)
    offsets = np.linspace(-0.18, 0.18, len(results)) if len(results) > 1 else [0.0]
    published = [SPLITS[name].unsupervised if name in SPLITS else (np.nan, np.nan) for name in names]
    axes.hlines(rows, *zip(*[(b, a) for a, b in published], strict=True), color=palette.grid, linewidth=7)
    axes.plot([], [], color=palette.grid, linewidth=7, label="SimCSE, published")
    for index, (name, result) in enumerate(results.items()):
        colour, places = palette.series[index % MODELS], rows + offsets[index]
        low, high = (
            np.array([getattr(each, part).value for each in result.sets], dtype=np.float64)
            for part in ("opposed", "consistent")
        )
        axes.hlines(places, low, high, color=colour, linewidth=1.2)
        axes.plot(low, places, "o", color=colour, markersize=5, label=short(name))
        axes.plot(high, places, "o", markerfacecolor="none", markeredgecolor=colour, markersize=5)
    axes.set_yticks(rows, [short(name) for name in names])
    axes.invert_yaxis()
    axes.set_xlabel("filled: misleading, open: helpful")
    legend(axes, palette, columns=1)
    return plot


def means(models: Models, palette: Palette) -> Figure:
    """Draw the mean cosine of each transformation with 95 % intervals (OssCSE Figure 2)."""
    results = {name: each.transformations for name, each in models.items() if each.transformations is not None}
    kinds = [kind.kind for kind in next(iter(results.values())).kinds]
    plot, axes = figure(palette, 1.1 + 0.42 * len(kinds) + 0.1 * len(results))
    rows = np.arange(len(kinds), dtype=np.float64)
    offsets = np.linspace(-0.17, 0.17, len(results)) if len(results) > 1 else [0.0]
    for index, (name, result) in enumerate(results.items()):
        values = [kind.cosine for kind in result.kinds]
        middle = np.array([e.value for e in values], dtype=np.float64)
        spread = np.abs(np.array([[e.low, e.high] for e in values], dtype=np.float64).T - middle)
        axes.errorbar(
            middle,
            rows + offsets[index],
            xerr=spread,
            fmt=_MARKERS[index % len(_MARKERS)],
            color=palette.series[index % MODELS],
            markersize=5,
            elinewidth=1.4,
            label=short(name),
        )
    axes.set_yticks(rows, kinds)
    axes.invert_yaxis()
    axes.set_xlim(right=1.02)
    axes.set_xlabel("mean cosine with the sentence")
    legend(axes, palette, columns=1 if len(results) > 2 else 2)
    return plot


def scatter(clouds: Mapping[str, tuple[Values, Values]], lowest: float, palette: Palette) -> Figure:
    """Draw cosine against match error rate of pairs (OssCSE Figure 1).

    Args:
        clouds: By label, the cosines and the error rates of some pairs.
        lowest: Lower end of the cosine axis, which figures that are compared have in common.
        palette: Colours.
    """
    plot, axes = figure(palette, 3.0 + LEGEND_ROW * len(clouds))
    for index, (label, (cosines, error_rates)) in enumerate(clouds.items()):
        axes.scatter(
            cosines,
            error_rates,
            s=12,
            color={"paraphrase": palette.good, "negation": palette.bad}.get(label, palette.series[index % MODELS]),
            marker="oxs^D+"[index % 6],
            alpha=0.65,
            linewidths=1,
            label=short(label, 56),
        )
    axes.set_xlim(lowest - 0.02, 1.02)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlabel("cosine of the pair")
    axes.set_ylabel("match error rate")
    legend(axes, palette, columns=1)
    return plot


def histogram(counts: Mapping[str, Values], quantity: str, palette: Palette) -> Figure:
    """Draw distributions of pairs between 0 and 1 (DebCSE Figures 1 and 4, SAN Figure 4).

    Args:
        counts: By label, the number of pairs in each interval of equal width.
        quantity: What is distributed, for the axis.
        palette: Colours.
    """
    plot, axes = figure(palette, 2.7 + LEGEND_ROW * len(counts))
    for index, (label, found) in enumerate(counts.items()):
        colour, share = palette.series[index % MODELS], np.array(found) / sum(found)
        edges = np.linspace(0, 1, len(share) + 1)
        axes.stairs(share, edges, color=colour, linewidth=1.6, label=short(label, 56))
        axes.stairs(share, edges, color=colour, alpha=0.12, fill=True)
    axes.set_xlabel(quantity)
    axes.set_ylabel("share of pairs")
    axes.set_xlim(0, 1)
    legend(axes, palette, columns=1)
    return plot


def counted(cosines: Values) -> np.ndarray:
    """Return the number of cosines in 25 intervals; below 0 counts as 0."""
    return np.histogram(np.clip(cosines, 0, 1), 25, (0, 1))[0]


def length(models: Models, palette: Palette) -> Figure:
    """Draw the mean cosine beyond the prediction from human scores, by difference of length."""
    plot, axes = figure(palette, 2.9)
    axes.axhline(0, color=palette.muted, linewidth=1)
    for index, (name, each) in enumerate(models.items()):
        if each.length is not None:
            bins = [b for b in each.length.bins if b.excess is not None]
            axes.plot(
                [f"{100 * b.low:.0f}–{100 * b.high:.0f}" for b in bins],
                np.array([b.excess for b in bins], dtype=np.float64),
                marker=_MARKERS[index % len(_MARKERS)],
                markersize=5,
                color=palette.series[index % MODELS],
                linewidth=1.6,
                label=short(name),
            )
    axes.set_xlabel("difference of length, % of the longer one's words")
    axes.set_ylabel("cosine above expectation")
    legend(axes, palette, columns=1 if len(models) > 2 else 2)
    return plot


def draw_curves(groups: Mapping[str, Sequence[Curve]], quantity: str, palette: Palette, along: str = "step") -> Figure:
    """Draw the mean over the curves of each group, in a band from the lowest to the highest.

    Args:
        groups: By label, the curves of the group, one for each seed; a group without curves is left out.
        quantity: What the curves show, for the axis.
        palette: Colours.
        along: What they run along, for the other axis.
    """
    plot, axes = figure(palette, 2.6 + LEGEND_ROW * len(groups))
    for index, (label, curves) in enumerate(groups.items()):
        if not curves:
            continue
        tables = [dict(curve) for curve in curves]
        steps = sorted(set.intersection(*(set(table) for table in tables)))
        values = np.array([[table[step] for step in steps] for table in tables], dtype=np.float64)
        colour = palette.series[index % MODELS]
        axes.plot(steps, values.mean(axis=0), color=colour, linewidth=1.6, label=short(label, 56))
        if len(curves) > 1:
            axes.fill_between(steps, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.15, linewidth=0)
    axes.set_xlabel(along)
    axes.set_ylabel(quantity)
    legend(axes, palette, columns=1)
    return plot


def strength_picture(curve: StrengthCurve) -> Picture:
    """Return a figure of what each measure of meaning gains, and of what the worst guard loses, by strength."""
    groups = {
        shown(name.removeprefix("dev-"), 40): [_gains(curve, {name: values})] for name, values in curve.meaning.items()
    }
    if curve.guards:
        groups["the guard that loses most"] = [_gains(curve, curve.guards)]
    return Picture(
        "strength",
        "What the strength of the meaning block gains and costs",
        f"Points above the model without the block. This model has the strength {curve.chosen:g}, the largest at "
        f"which no guard loses more than {curve.tolerance:g}; it can be changed without encoding anything anew.",
        partial(draw_curves, groups, "points", along="strength"),
    )


def _gains(curve: StrengthCurve, scores: Scores) -> list[tuple[float, float]]:
    """Return the least gain of some measures at each strength."""
    by_strength = zip(*scores.values(), strict=True)
    before = [values[0] for values in scores.values()]
    gains = [min(map(sub, after, before)) for after in by_strength]
    return list(zip(curve.strengths, gains, strict=True))
