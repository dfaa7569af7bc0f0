"""Sentence vectors in two dimensions (BYOP Figure 1)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from opencse.commands.reports.drawing import WIDTH
from opencse.commands.reports.palette import MODELS, Palette
from opencse.commands.reports.text import short
from opencse.foundation.unit_rows import unit_rows


@dataclass(frozen=True, kw_only=True, eq=False)
class Projection:
    """The first two principal components of unit vectors.

    Attributes:
        points: Coordinates, shape (n, 2).
        share: Share of the variance that they hold.
        mean_cosine: Mean cosine of two distinct sentences; 1 is a single direction.
    """

    points: np.ndarray
    share: float
    mean_cosine: float

    def scores(self) -> dict[str, float]:
        """Return the measures by column."""
        return {"mean cosine": self.mean_cosine, "variance shown, %": 100 * self.share}


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
