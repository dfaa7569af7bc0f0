"""Charts of the reports, and their form in a page."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from opencse.commands.reports.tables import Change
from opencse.debias.strength import StrengthCurve
from opencse.evaluation.probes import Transformations
from opencse.foundation.figures import LEGEND_ROW, Draw, empty_figure, legend, save, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def figure_address(draw: Draw) -> str:
    """Return a figure as a `data:` address."""
    stream = io.BytesIO()
    save(draw, stream)
    return f"data:image/svg+xml;base64,{base64.b64encode(stream.getvalue()).decode()}"


def draw_means(results: Mapping[str, Transformations]) -> Figure:
    """Draw the mean cosine of each transformation with 95 % intervals (OssCSE Figure 2)."""
    kinds = [kind.kind for kind in next(iter(results.values())).kinds]
    plot, axes = empty_figure(1.1 + 0.42 * len(kinds) + 0.1 * len(results))
    offsets = np.linspace(-0.17, 0.17, len(results)) if len(results) > 1 else [0.0]
    for index, (name, result) in enumerate(results.items()):
        values = [(e.value, e.low, e.high) for e in (kind.cosine for kind in result.kinds)]
        middle, low, high = np.array(values, dtype=np.float64).T
        spread, rows = np.abs((low - middle, high - middle)), np.arange(len(kinds)) + offsets[index]
        axes.errorbar(
            middle, rows, xerr=spread, fmt="osD^vP"[index % 6], markersize=5, label=short(name, 26)
        )
    axes.set_yticks(range(len(kinds)), kinds)
    axes.invert_yaxis()
    axes.set_xlim(right=1.02)
    axes.set_xlabel("mean cosine with the sentence")
    legend(axes, columns=1 if len(results) > 2 else 2)
    return plot


_GAIN = "#1f7a5c"
_LOSS = "#b8432f"
_NEUTRAL = "#8a93a0"
_ROW = 0.34
"""Height of one measure in inches."""


def draw_changes(changes: Sequence[Change]) -> Figure:
    """Draw each measure as a line from its score before to its score after, the first at the top."""
    plot, axes = empty_figure(0.9 + _ROW * len(changes))
    for row, change in enumerate(changes):
        colour = _NEUTRAL
        if change.changed:
            colour = _GAIN if change.after > change.before else _LOSS
        axes.plot([change.before, change.after], [row, row], color=colour, linewidth=2.2, zorder=2)
        axes.plot(change.before, row, "o", color="white", markeredgecolor=colour, zorder=3)
        axes.plot(change.after, row, "o", color=colour, zorder=4)
    axes.set_yticks(range(len(changes)), [short(change.measure, 34) for change in changes])
    axes.invert_yaxis()
    axes.margins(x=0.06)
    axes.set_xlabel("before (white) and after, in points")
    axes.grid(visible=False, axis="y")
    return plot


def draw_strength(curve: StrengthCurve) -> Figure:
    """Draw how many points every score gains or loses with the strength of the meaning block.

    Scores of meaning are solid, guards are dashed, and a vertical line marks the chosen strength.
    The band is what a guard may lose.
    """
    named = [(name, values, "-") for name, values in curve.meaning.items()]
    named += [(name, values, "--") for name, values in curve.guards.items()]
    plot, axes = empty_figure(3.2 + LEGEND_ROW * (len(named) + 1) / 2)
    axes.axhspan(-curve.tolerance, 0, color=_NEUTRAL, alpha=0.25, linewidth=0)
    axes.axvline(curve.chosen, color=_NEUTRAL, linewidth=1.2)
    for place, (name, values, style) in enumerate(named):
        gained = [value - values[0] for value in values]
        label = short(name.removeprefix("dev-").replace("guard-", "guard: "), 24)
        colour = f"C{place % 6}"
        axes.plot(curve.strengths, gained, style, color=colour, linewidth=1.8, label=label)
    axes.annotate(
        f"chosen: {curve.chosen:g}",
        (curve.chosen, 0),
        xytext=(4, 4),
        textcoords="offset points",
        color="#667080",
    )
    axes.set(xlabel="strength of the meaning vector", ylabel="points gained")
    legend(axes, columns=2)
    return plot
