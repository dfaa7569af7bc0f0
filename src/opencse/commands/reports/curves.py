"""A quantity by training step or by strength, one line for each group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from opencse.commands.reports.drawing import LEGEND_ROW, figure, legend
from opencse.commands.reports.palette import MODELS, Palette
from opencse.commands.reports.text import short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Curve = Sequence[tuple[float, float]]
"""Step, or another number, and value; of a repeated step, the last counts."""


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
