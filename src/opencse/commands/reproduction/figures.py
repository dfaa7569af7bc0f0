"""A reproduced table as a figure."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from opencse.commands.reports.drawing import LEGEND_ROW, figure, legend
from opencse.commands.reports.palette import MODELS, Palette
from opencse.commands.reports.text import short
from opencse.commands.reproduction.tables import ReproducedTable

_ASIDE = 0.12
"""Distance of two rows' points, in columns."""


def draw_table(table: ReproducedTable, palette: Palette, *, joined: bool = True) -> Figure:
    """Draw the means of a table in the colour of their row; what the paper has is hollow.

    Args:
        table: The table.
        palette: Its colours.
        joined: Whether a line joins the points of a row, because the columns follow each other, such as steps.
            Otherwise the rows' points stand side by side.
    """
    plot, axes = figure(palette, 2.4 + LEGEND_ROW * len(table.rows))
    tasks = {column.rpartition(": ")[0] for column in table.columns}
    ticks = [column.rpartition(": ")[2] if len(tasks) == 1 else column for column in table.columns]
    measured_line, printed_line = ("-", ":") if joined else ("none", "none")
    for index, (label, cells) in enumerate(table.rows.items()):
        colour = palette.series[index % MODELS]
        aside = 0.0 if joined else _ASIDE * (index - (len(table.rows) - 1) / 2)
        places = np.arange(len(ticks)) + aside
        measured = [float(np.mean(cell.values)) if cell.values else np.nan for cell in cells]
        printed = [np.nan if cell.printed is None else cell.printed for cell in cells]
        axes.plot(
            places, measured, marker="o", color=colour, linestyle=measured_line, linewidth=1.6, label=short(label, 56)
        )
        if not np.isnan(printed).all():
            axes.plot(places, printed, marker="o", color=colour, linestyle=printed_line, fillstyle="none", linewidth=1)
    axes.set_xticks(range(len(ticks)), ticks)
    if max(map(len, ticks)) > 8:
        axes.set_xticks(range(len(ticks)), ticks, rotation=30, ha="right", rotation_mode="anchor")
    if not joined:
        axes.set_xlim(-0.5, len(ticks) - 0.5)
    if len(tasks) == 1:
        axes.set_ylabel(next(iter(tasks)))
    legend(axes, palette, columns=1)
    return plot
