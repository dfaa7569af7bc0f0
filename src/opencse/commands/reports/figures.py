"""The figures of a probe report, with their titles and captions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from opencse.commands.reports.drawing import LEGEND_ROW, MODELS, Draw, Palette, can_draw, figure, legend
from opencse.commands.reports.text import short, shown
from opencse.evaluation.probes import ProbeScores

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
        for index, (name, kinds) in enumerate(clouds.items(), 1):
            if kinds:
                yield Picture(
                    f"wording-{index}",
                    f"Similarity against wording: {shown(name, 40)}",
                    "Each mark is one sentence. If only meaning counted, paraphrases would lie to the right and "
                    "negations to the left, at any height.",
                    partial(scatter, kinds, lowest),
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


def means(models: Models, palette: Palette) -> Figure:
    """Draw the mean cosine of each transformation with 95 % intervals (OssCSE Figure 2)."""
    results = {name: each.transformations for name, each in models.items() if each.transformations is not None}
    kinds = [kind.kind for kind in next(iter(results.values())).kinds]
    plot, axes = figure(palette, 1.1 + 0.42 * len(kinds) + 0.1 * len(results))
    rows = np.arange(len(kinds), dtype=np.float64)
    offsets = np.linspace(-0.17, 0.17, len(results)) if len(results) > 1 else [0.0]
    for index, (name, result) in enumerate(results.items()):
        values = [(e.value, e.low, e.high) for e in (kind.cosine for kind in result.kinds)]
        middle, low, high = np.array(values, dtype=np.float64).T
        axes.errorbar(
            middle,
            rows + offsets[index],
            xerr=np.abs((low - middle, high - middle)),
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
