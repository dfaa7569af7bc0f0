"""Figures as SVG: cosines against wording, distributions and curves, in one style."""

from __future__ import annotations

import importlib.util
import io
import logging
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from opencse.foundation.page_text import shown

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NO_FIGURES = 'No figures: matplotlib is not installed (pip install "opencse[figures]").'
WIDTH = 4.6
"""Width of all figures in inches of 72 units: about that of a phone, so that texts stay readable."""
LEGEND_ROW = 0.22
"""Height of one row of a legend in inches; a figure grows by it for each row, so that none is cut off."""

_STYLE = Path(__file__).with_name("figures.mplstyle")
COLOURS = {"paraphrase": "#1f7a5c", "negation": "#b8432f"}

Values = Sequence[float] | np.ndarray
Curve = Sequence[tuple[float, float]]
"""Step, or another number, and value; of a repeated step, the last counts."""
Draw = Callable[[], "Figure"]

# It warns of a home folder that it cannot write to.
logging.getLogger("matplotlib").setLevel(logging.ERROR)


def can_draw() -> bool:
    """Return whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def save(
    draw: Draw, target: Path | io.BytesIO, *, kind: str = "svg", ground: str = "white"
) -> None:
    """Write a figure; the same figure gives the same bytes.

    Args:
        draw: Draws it.
        target: File or stream.
        kind: `svg`, or `png` with 200 dots per inch.
        ground: Color of the ground, or `none`.
    """
    from matplotlib import rc_context

    with rc_context(fname=_STYLE), warnings.catch_warnings():
        # The name of a model may be in a script that the font lacks.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        about = {"Date": None} if kind == "svg" else {"Software": None}
        draw().savefig(target, format=kind, metadata=about, facecolor=ground, dpi=200)


def empty_figure(height: float) -> tuple[Figure, Axes]:
    """Return a figure of the common width, and its axes."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(WIDTH, height), layout="constrained")
    return drawn, drawn.add_subplot()


def legend(axes: Axes, columns: int = 1) -> None:
    """Put the legend above the axes, where it hides no data."""
    axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=columns)


def short(text: str, limit: int = 56) -> str:
    """Return a short name for a figure: cut at `limit` characters, and safe like the result of `shown`."""
    return shown(text if len(text) <= limit else text[: limit - 1] + "…")[: 2 * limit]


def draw_scatter(clouds: Mapping[str, tuple[Values, Values]], lowest: float) -> Figure:
    """Draw cosine against match error rate of pairs (OssCSE Figure 1).

    Args:
        clouds: By label, the cosines and the error rates of some pairs.
        lowest: Lower end of the cosine axis, which figures that are compared have in common.
    """
    plot, axes = empty_figure(3.0 + LEGEND_ROW * len(clouds))
    for index, (label, values) in enumerate(clouds.items()):
        cosines, error_rates = values
        axes.scatter(
            cosines,
            error_rates,
            s=12,
            color=COLOURS.get(label, f"C{index}"),
            marker="oxs^D+"[index % 6],
            alpha=0.65,
            linewidths=1,
            label=short(label),
        )
    axes.set(
        xlim=(lowest - 0.02, 1.02),
        ylim=(-0.03, 1.03),
        xlabel="cosine of the pair",
        ylabel="match error rate",
    )
    legend(axes)
    return plot


def draw_histogram(groups: Mapping[str, Values]) -> Figure:
    """Draw distributions of cosines, below 0 as 0 (DebCSE Figures 1 and 4, SAN Figure 4).

    Args:
        groups: By label, the cosines of some pairs.
    """
    plot, axes = empty_figure(2.7 + LEGEND_ROW * len(groups))
    for index, (label, cosines) in enumerate(groups.items()):
        counts, edges = np.histogram(np.clip(cosines, 0, 1), 25, (0, 1))
        share = counts / len(cosines)
        axes.stairs(share, edges, color=f"C{index}", linewidth=1.6, label=short(label))
        axes.stairs(share, edges, color=f"C{index}", alpha=0.12, fill=True)
    axes.set(xlim=(0, 1), xlabel="cosine of the pair", ylabel="share of pairs")
    legend(axes)
    return plot


def draw_curves(groups: Mapping[str, Sequence[Curve]], quantity: str) -> Figure:
    """Draw the mean over the curves of each group, in a band from the lowest to the highest.

    Args:
        groups: By label, the curves of the group, one for each seed; a group without curves is left
            out.
        quantity: What the curves show, for the axis.
    """
    plot, axes = empty_figure(2.6 + LEGEND_ROW * len(groups))
    for index, (label, curves) in enumerate(groups.items()):
        if not curves:
            continue
        tables = [dict(curve) for curve in curves]
        steps = sorted(set.intersection(*(set(table) for table in tables)))
        values = np.array([[table[step] for step in steps] for table in tables], dtype=np.float64)
        axes.plot(steps, values.mean(axis=0), color=f"C{index}", linewidth=1.6, label=short(label))
        if len(curves) > 1:
            band = values.min(axis=0), values.max(axis=0)
            axes.fill_between(steps, *band, color=f"C{index}", alpha=0.15, linewidth=0)
    axes.set(xlabel="step", ylabel=quantity)
    legend(axes)
    return plot
