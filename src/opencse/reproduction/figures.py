"""A reproduced table as a figure."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure

from opencse.reports.drawing import LEGEND_ROW, figure, legend
from opencse.reports.palette import MODELS, Palette
from opencse.reports.text import short
from opencse.reproduction.tables import ReproducedTable


def draw_table(table: ReproducedTable, palette: Palette) -> Figure:
    """Draw the means of a table, a line of points for each row; what the paper has is dotted, with hollow points."""
    plot, axes = figure(palette, 2.4 + LEGEND_ROW * len(table.rows))
    tasks = {column.rpartition(": ")[0] for column in table.columns}
    ticks = [column.rpartition(": ")[2] if len(tasks) == 1 else column for column in table.columns]
    for index, (label, cells) in enumerate(table.rows.items()):
        colour = palette.series[index % MODELS]
        measured = [float(np.mean(cell.values)) if cell.values else np.nan for cell in cells]
        printed = [np.nan if cell.printed is None else cell.printed for cell in cells]
        axes.plot(ticks, measured, marker="o", color=colour, linewidth=1.6, label=short(label, 56))
        if not np.isnan(printed).all():
            axes.plot(ticks, printed, marker="o", color=colour, linestyle=":", fillstyle="none", linewidth=1)
    if max(map(len, ticks)) > 8:
        axes.set_xticks(range(len(ticks)), ticks, rotation=30, ha="right", rotation_mode="anchor")
    if len(tasks) == 1:
        axes.set_ylabel(next(iter(tasks)))
    legend(axes, palette, columns=1)
    return plot
