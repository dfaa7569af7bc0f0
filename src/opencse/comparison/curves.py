"""Learning curves: development score or loss by step, one line for each group."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from opencse.comparison.run_groups import Curve, Group
from opencse.reports.drawing import figure, legend, save
from opencse.reports.palette import MODELS, Palette
from opencse.reports.text import short


def save_curves(groups: Sequence[Group], path: Path) -> list[Path]:
    """Write the learning curves as `path`.svg and `path`.png; return the paths, none if no run logged anything.

    Development scores are drawn if every group has them, and otherwise losses, which are not comparable across recipes.
    """
    dev = all(any(run.curve for run in group.runs) for group in groups)
    if not dev and not any(run.losses for group in groups for run in group.runs):
        return []
    return save(partial(draw_curves, groups, "curve" if dev else "losses"), path)


def draw_curves(groups: Sequence[Group], quantity: str, palette: Palette) -> Figure:
    """Draw the mean over seeds of each group, in a band from the lowest to the highest seed.

    Args:
        groups: The groups.
        quantity: Attribute of the runs: `curve` or `losses`.
        palette: Colours.
    """
    plot, axes = figure(palette, 2.6 + 0.2 * len(groups))
    for index, group in enumerate(groups):
        curves = [getattr(run, quantity) for run in group.runs if getattr(run, quantity)]
        if not curves:
            continue
        steps, values = _common(curves)
        colour = palette.series[index % MODELS]
        axes.plot(steps, values.mean(axis=0), color=colour, linewidth=1.6, label=short(group.label, 56))
        if len(curves) > 1:
            axes.fill_between(steps, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.15, linewidth=0)
    axes.set_xlabel("step")
    axes.set_ylabel("Spearman × 100, development" if quantity == "curve" else "loss")
    legend(axes, palette, columns=1)
    return plot


def _common(curves: Sequence[Curve]) -> tuple[np.ndarray, np.ndarray]:
    """Return the steps of all curves and their values of shape (curves, steps); of a repeated step, the last counts."""
    tables = [dict(curve) for curve in curves]
    steps = sorted(set.intersection(*(set(table) for table in tables)))
    return np.array(steps), np.array([[table[step] for step in steps] for table in tables], dtype=np.float64)
