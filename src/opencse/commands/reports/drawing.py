"""Matplotlib figures as SVG inside a page and as files beside it."""

from __future__ import annotations

import importlib.util
import io
import logging
import re
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opencse.foundation.files import replaced_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MODELS = 6
"""Number of models with a colour of their own; further models reuse the colours with another marker."""


@dataclass(frozen=True)
class Palette:
    """Colours of one theme; `good` is for paraphrases, `bad` for negations, and `series` has one for each model."""

    ink: str
    muted: str
    grid: str
    panel: str
    good: str
    bad: str
    series: tuple[str, ...]

    def variables(self) -> dict[str, str]:
        """Return the colours as CSS custom properties, by name."""
        single = {f"--{f.name}": getattr(self, f.name) for f in fields(self) if f.name != "series"}
        return single | {f"--m{index}": colour for index, colour in enumerate(self.series)}


LIGHT = Palette(
    ink="#1c2430",
    muted="#667080",
    grid="#dfe3e8",
    panel="#ffffff",
    good="#1f7a5c",
    bad="#b8432f",
    series=("#2563a8", "#c2661a", "#5b7f2b", "#83509c", "#0f7f86", "#a13a63"),
)
DARK = Palette(
    ink="#e8ebf0",
    muted="#9aa4b2",
    grid="#323b47",
    panel="#1b212a",
    good="#5cc39c",
    bad="#ee8c78",
    series=("#78b0ee", "#eea35c", "#a5cb70", "#c698de", "#5fc7cd", "#e88bb0"),
)
# Placeholders that matplotlib writes unchanged and that `drawing.inline` replaces by CSS variables.
PLACEHOLDER = Palette(
    ink="#010101",
    muted="#010102",
    grid="#010103",
    panel="#010104",
    good="#010105",
    bad="#010106",
    series=tuple(f"#01020{index}" for index in range(MODELS)),
)

logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it warns of a home that it cannot write
Draw = Callable[[Palette], "Figure"]

NO_FIGURES = 'No figures: matplotlib is not installed (pip install "opencse[figures]").'

WIDTH = 4.6
"""Width of all figures in inches of 72 units: about that of a phone, so that texts stay readable."""

LEGEND_ROW = 0.22
"""Height of one row of a legend in inches; a figure grows by it for each row, so that none is cut off."""

_SETTINGS: Any = {
    "font.size": 10.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "text.parse_math": False,  # a label may hold a dollar sign
    "svg.fonttype": "none",  # text stays text
    "svg.hashsalt": "opencse",  # the same figure gives the same bytes
    "figure.dpi": 72,
}


def can_draw() -> bool:
    """Return whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def figure(palette: Palette, height: float) -> tuple[Figure, Axes]:
    """Return an empty figure of the common width and look, and its axes."""
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(WIDTH, height), layout="constrained", facecolor="none")
    axes = drawn.add_subplot()
    style(axes, palette)
    return drawn, axes


def style(axes: Axes, palette: Palette) -> None:
    """Give axes the common look."""
    axes.set_facecolor("none")
    axes.grid(True, color=palette.grid, linewidth=0.8)
    for spine in axes.spines.values():
        spine.set_color(palette.grid)
    axes.tick_params(colors=palette.muted)
    axes.xaxis.label.set_color(palette.muted)
    axes.yaxis.label.set_color(palette.muted)


def legend(axes: Axes, palette: Palette, columns: int = 2) -> None:
    """Put the legend above the axes, where it hides no data."""
    axes.legend(
        loc="lower left",
        bbox_to_anchor=(-0.02, 1.0),
        ncols=columns,
        frameon=False,
        labelcolor=palette.ink,
        handletextpad=0.5,
        columnspacing=1.4,
        borderaxespad=0.2,
    )


def inline(draw: Draw, prefix: str) -> str:
    """Return a figure as an SVG element with the colours of the page.

    It refers to nothing outside itself. Matplotlib escapes the texts in it.

    Args:
        draw: Draws the figure in a palette.
        prefix: Prefix of the identifiers in the SVG, distinct for each figure of a page.
    """
    with _drawing():
        stream = io.StringIO()
        draw(PLACEHOLDER).savefig(stream, format="svg", metadata={"Date": None}, transparent=True)
    svg = stream.getvalue()
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r'\b(id="|url\(#|xlink:href="#)', rf"\g<1>{prefix}-", svg)
    for name, value in PLACEHOLDER.variables().items():
        svg = svg.replace(value, f"var({name})")
    return re.sub(
        r'<svg ([^>]*?)width="[^"]*" height="[^"]*"', r'<svg aria-hidden="true" focusable="false" \1', svg, count=1
    )


def save(draw: Draw, path: Path) -> list[Path]:
    """Write a figure as `path`.svg and `path`.png in the colours of a light page; return both paths."""
    written = []
    for ending in ("svg", "png"):
        file = path.with_name(f"{path.name}.{ending}")
        metadata = {"Date": None} if ending == "svg" else {"Software": None}
        with replaced_file(file) as temporary, _drawing():
            draw(LIGHT).savefig(temporary, format=ending, metadata=metadata, dpi=200, facecolor=LIGHT.panel)
        written.append(file)
    return written


@contextmanager
def _drawing() -> Iterator[None]:
    from matplotlib import rc_context

    with rc_context(_SETTINGS), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from")  # a name in another script
        yield
