"""Charts of the reports, and their form in a page."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from opencse.commands.reports.tables import Change
from opencse.debias.strength import StrengthCurve
from opencse.evaluation.estimate import Estimate
from opencse.evaluation.probes import Transformations
from opencse.foundation.figures import LEGEND_ROW, Draw, empty_figure, legend, save, short

if TYPE_CHECKING:
    from matplotlib.figure import Figure


# Colors of figures on a dark page, by those on a light one; the same as in style.css.j2.
_DARK = {
    "#ffffff": "#1b2129",
    "#1c2430": "#e4e8ee",
    "#667080": "#9aa5b4",
    "#dfe3e8": "#303945",
    "#2563a8": "#7fb2e8",
    "#c2661a": "#e8a066",
    "#5b7f2b": "#a5c878",
    "#83509c": "#c79be0",
    "#0f7f86": "#62c4cb",
    "#a13a63": "#e089ad",
    "#1f7a5c": "#5fc39b",
    "#b8432f": "#ef8a72",
}


@dataclass(frozen=True)
class Chart:
    """A figure of a page.

    Attributes:
        title: Its title.
        caption: How to read it, in a sentence or two.
        source: The figure as a `data:` address.
    """

    title: str
    caption: str
    source: str


def chart(title: str, caption: str, draw: Draw) -> Chart:
    """Return a figure for a page, in the colors of the reader's screen, light or dark."""
    stream = io.BytesIO()
    save(draw, stream, ground="none")
    drawn = stream.getvalue().decode()
    # A picture in an <img> does not see the style sheet of the page, but it knows whether that is dark.
    rules = []
    for light, dark in _DARK.items():
        for drawn_with in ("fill", "stroke"):
            rules.append(f'[style*="{drawn_with}: {light}"] {{ {drawn_with}: {dark} !important }}')
    style = f"<style>@media screen and (prefers-color-scheme: dark) {{ {' '.join(rules)} }}</style>"
    drawn = drawn.replace("</svg>", f"{style}</svg>")
    encoded = base64.b64encode(drawn.encode()).decode()
    return Chart(title, caption, f"data:image/svg+xml;base64,{encoded}")


# Models have a color each, and for readers who do not see colors a marker each.
_MARKERS = "osD^vP"


def draw_means(results: Mapping[str, Transformations]) -> Figure:
    """Draw the mean cosine of each transformation with 95 % intervals (OssCSE Figure 2)."""
    kinds = [kind.kind for kind in next(iter(results.values())).kinds]
    plot, axes = empty_figure(1.1 + 0.42 * len(kinds) + 0.1 * len(results))
    # Models stand next to each other in the row of a kind, or their intervals would hide each other.
    offsets = [0.0]
    if len(results) > 1:
        offsets = list(np.linspace(-0.17, 0.17, len(results)))
    for index, (name, result) in enumerate(results.items()):
        cosines = [kind.cosine for kind in result.kinds]
        # A cosine that is not defined becomes NaN, which is not drawn.
        middle = np.array([cosine.value for cosine in cosines], dtype=np.float64)
        low = np.array([cosine.low for cosine in cosines], dtype=np.float64)
        high = np.array([cosine.high for cosine in cosines], dtype=np.float64)
        axes.errorbar(
            middle,
            np.arange(len(kinds)) + offsets[index],
            xerr=np.abs((low - middle, high - middle)),
            fmt=_MARKERS[index % len(_MARKERS)],
            markersize=5,
            label=short(name, 26),
        )
    axes.set_yticks(range(len(kinds)), kinds)
    axes.invert_yaxis()
    axes.set_xlim(right=1.02)
    axes.set_xlabel("mean cosine with the sentence")
    legend(axes, columns=1 if len(results) > 2 else 2)
    return plot


# Colors of what got better, of what got worse, and of what did neither.
_GAIN = "#1f7a5c"
_LOSS = "#b8432f"
_NEUTRAL = "#8a93a0"
# Height of one measure in inches.
_ROW = 0.34


def measure_name(measure: str) -> str:
    """Return the name of a measure without its unit, and without what its definition repeats."""
    return measure.removesuffix(", %").removesuffix(": paraphrase nearer")


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
    axes.set_yticks(
        range(len(changes)), [short(measure_name(change.measure), 32) for change in changes]
    )
    axes.invert_yaxis()
    axes.margins(x=0.06)
    axes.set_xlabel("○ before   ● after")
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


def draw_rates(rates: Mapping[str, Estimate]) -> Figure:
    """Draw rates in percent with their 95 % intervals, and a line at chance."""
    plot, axes = empty_figure(0.9 + _ROW * len(rates))
    axes.axvline(50, color=_NEUTRAL, linewidth=1.2, linestyle=":")
    for row, rate in enumerate(rates.values()):
        if rate.value is None:
            continue
        axes.plot(100 * rate.value, row, "o", color=_LOSS, zorder=3)
        if rate.low is not None and rate.high is not None:
            ends = [100 * rate.low, 100 * rate.high]
            axes.plot(ends, [row, row], color=_LOSS, linewidth=2, alpha=0.5)
    labels = [f"{short(name, 26)} ({rate.rows:,})" for name, rate in rates.items()]
    axes.set_yticks(range(len(rates)), labels)
    axes.set_ylim(len(rates) - 0.5, -0.5)
    axes.set_xlim(-3, 103)
    axes.set_xlabel("contradiction first, %")
    axes.grid(visible=False, axis="y")
    return plot


def draw_shared(counts: Sequence[int]) -> Figure:
    """Draw how many searches share 0, 1, 2, … of their first hits."""
    plot, axes = empty_figure(2.4)
    axes.bar(range(len(counts)), counts, color="C0", width=0.8)
    axes.set_xticks(range(len(counts)))
    axes.set(xlabel=f"hits in both lists, of {len(counts) - 1}", ylabel="searches")
    axes.grid(visible=False, axis="x")
    return plot


def draw_averages(groups: Mapping[str, Sequence[float]]) -> Figure:
    """Draw the score of each seed as a dot, and mean ± standard deviation of each group of runs."""
    plot, axes = empty_figure(0.9 + 0.42 * len(groups))
    for row, values in enumerate(groups.values()):
        axes.plot(values, [row] * len(values), "o", color="C0", alpha=0.35, markersize=5)
        spread = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        axes.errorbar(float(np.mean(values)), row, xerr=spread, fmt="D", color="C0", capsize=3)
    axes.set_yticks(range(len(groups)), [short(label, 30) for label in groups])
    axes.set_ylim(len(groups) - 0.5, -0.5)
    axes.margins(x=0.08)
    axes.set_xlabel(
        "average score (dot: one seed; diamond: mean ± standard deviation)", fontsize=8.5
    )
    axes.grid(visible=False, axis="y")
    return plot
