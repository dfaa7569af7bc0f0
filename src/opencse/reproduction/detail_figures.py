"""Figures of pairs and of projected sentences under several models."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from matplotlib.figure import Figure

from opencse.reports.drawing import LEGEND_ROW, WIDTH, figure, legend
from opencse.reports.palette import MODELS, Palette
from opencse.reports.text import short
from opencse.reproduction.pair_cosines import PairCosines
from opencse.reproduction.projection import Projection

_MARKERS = "oxs^D+"
_BINS = np.linspace(0, 1, 26)

Clouds = Mapping[str, tuple[PairCosines, str]]
"""By label, what was measured and which group of it is shown."""


def draw_scatter(clouds: Clouds, palette: Palette, *, lowest: float) -> Figure:
    """Draw cosine against match error rate of each pair (OssCSE Figure 1).

    Args:
        clouds: The pairs.
        palette: Colours.
        lowest: Lower end of the cosine axis, which figures that are compared have in common.
    """
    plot, axes = figure(palette, 3.0 + LEGEND_ROW * len(clouds))
    for index, (label, (measured, group)) in enumerate(clouds.items()):
        axes.scatter(
            measured.cosines[group],
            measured.error_rates[group],
            s=10,
            color=palette.series[index % MODELS],
            marker=_MARKERS[index % len(_MARKERS)],
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


def draw_histogram(clouds: Clouds, palette: Palette) -> Figure:
    """Draw the distribution of the cosines (DebCSE Figures 1 and 4, SAN Figure 4); below 0 counts as 0."""
    plot, axes = figure(palette, 2.7 + LEGEND_ROW * len(clouds))
    for index, (label, (measured, group)) in enumerate(clouds.items()):
        counts, _ = np.histogram(np.clip(measured.cosines[group], 0, 1), _BINS)
        colour, share = palette.series[index % MODELS], counts / counts.sum()
        axes.stairs(share, _BINS, color=colour, linewidth=1.6, label=short(label, 56))
        axes.stairs(share, _BINS, color=colour, alpha=0.12, fill=True)
    axes.set_xlim(0, 1)
    axes.set_xlabel("cosine of the pair")
    axes.set_ylabel("share of pairs")
    legend(axes, palette, columns=1)
    return plot


def draw_projections(projections: Mapping[str, Projection], palette: Palette) -> Figure:
    """Draw the sentences of each model in its first two principal components, all on one scale (BYOP Figure 1)."""
    rows = -(-len(projections) // 2)
    plot = Figure(figsize=(WIDTH, 2.3 * rows), layout="constrained", facecolor="none")
    panels = list(plot.subplots(rows, 2, squeeze=False, sharex=True, sharey=True).flat)
    for index, (axes, (label, each)) in enumerate(zip(panels, projections.items(), strict=False)):
        axes.set_facecolor("none")
        axes.grid(True, color=palette.grid, linewidth=0.8)
        axes.tick_params(colors=palette.muted)
        for spine in axes.spines.values():
            spine.set_color(palette.grid)
        axes.scatter(*each.points.T, s=2, alpha=0.4, color=palette.series[index % MODELS], linewidths=0)
        title = f"{short(label)}\nmean cosine {each.mean_cosine:.2f}"
        axes.set_title(title, fontsize="small", color=palette.ink)
    if len(projections) % 2:
        panels[-1].set_visible(False)
        panels[-3 if rows > 1 else 0].tick_params(labelbottom=True)  # nothing is below it
    return plot
