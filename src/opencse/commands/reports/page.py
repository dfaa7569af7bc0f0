"""Pages from Jinja templates beside their data, the probe report, and figures as SVG, also those of reproductions."""

from __future__ import annotations

import base64
import importlib.util
import io
import logging
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from opencse.commands.reports.tables import Outcome, headline_rows, shown, tables
from opencse.debias.strength import StrengthCurve
from opencse.evaluation.probes import ProbeScores, Transformations
from opencse.evaluation.probes.probes import RetrievedText
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import write_json, write_text
from opencse.foundation.result_table import Table
from opencse.version import __version__

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


_EXAMPLES = 6
_RIGHT = "Right are 100 % paraphrases above negations and no negation first; below 50 %, wording counts more than meaning."


def render_template(name: str, **values: Any) -> str:
    """Return a page as text; every value in it is escaped unless it is `Markup` or a `Table`.

    Args:
        name: Template file in this folder.
        **values: Variables of the template, beside `version`.
    """
    environment = Environment(
        loader=PackageLoader("opencse.commands.reports", "."),
        autoescape=select_autoescape(default=True, default_for_string=True),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["shown"] = shown
    return environment.get_template(name).render(version=__version__, **values)


def output_folder(out: str | Path) -> Path:
    """Return the path of an output folder.

    Raises:
        OpencseError: It is a file.
    """
    out = Path(out)
    if out.exists() and not out.is_dir():
        raise OpencseError(f"{out} is a file, not a folder", "Choose another output folder.")
    return out


def write_page(
    out: str | Path, name: str, page: str, data: Mapping[str, Any], file: str = ""
) -> Path:
    """Write the data and the version as `NAME.json`, or as `file`, then `NAME.html`; return the path of the page.

    Raises:
        OpencseError: `out` is a file.
    """
    out = output_folder(out)
    write_json(out / (file or f"{name}.json"), {"version": __version__, **data})
    write_text(out / f"{name}.html", page)
    return out / f"{name}.html"


def write_report(
    models: Mapping[str, ProbeScores],
    out: str | Path,
    *,
    notes: Sequence[str] = (),
    outcome: Outcome | None = None,
    curve: StrengthCurve | None = None,
) -> Path:
    """Write `report.html` and `probe.json`; every text of the user in the page is escaped and clipped.

    Args:
        models: Scores by label; the first model is the baseline.
        out: A folder, created if needed; files with these names are replaced.
        notes: Remarks on the data: sets that were left out, rows that were sampled.
        outcome: How two models differ; its answers are the first lines of the page.
        curve: Scores by the strength of the trained model's meaning block.

    Returns:
        The path of the page.

    Raises:
        OpencseError: `out` is a file.
    """
    plain = {name: asdict(probed) for name, probed in models.items()}
    scores = {
        name: {"settings": result.pop("settings"), "scores": result}
        for name, result in plain.items()
    }
    data: dict[str, Any] = {"notes": notes, "models": scores}
    data |= {} if outcome is None else {"outcome": asdict(outcome)}
    data |= {} if curve is None else {"strength": asdict(curve)}
    labels = [shown(name, 60) for name in models]
    keys = next(iter(models.values())).settings
    rows = [(key, *(shown(probed.settings[key], 80) for probed in models.values())) for key in keys]
    page = render_template(
        "report.html.j2",
        outcome=outcome,
        names=labels,
        headlines=Table(("", *labels), headline_rows(models), notes=[_RIGHT]),
        pictures=list(pictures(models)),
        no_figures="" if can_draw() else NO_FIGURES,
        tables=[*([] if curve is None else [curve.table()]), *tables(models)],
        examples=list(_examples(models)),
        meanings={"paraphrase": "same meaning", "negation": "opposite", "other": "other sentence"},
        settings=Table(("", *labels), rows) if rows else None,
        notes=notes,
    )
    return write_page(out, "report", page, data, file="probe.json")


def _examples(
    models: Mapping[str, ProbeScores],
) -> Iterator[tuple[str, list[tuple[str, Sequence[RetrievedText]]]]]:
    """Yield a few queries with the hits of each model.

    First come those on which the models differ; of these, then of the others, those for which the
    first model finds the negation first (as in DiffCSE Table 9).
    """
    results = {name: probed.retrieval for name, probed in models.items() if probed.retrieval}
    if not results:
        return
    queries = next(iter(results.values())).queries
    first = [
        [result.hits[row][0].relation for result in results.values()] for row in range(len(queries))
    ]
    order = sorted(
        range(len(queries)),
        key=lambda row: (len(set(first[row])) == 1, first[row][0] != "negation"),
    )
    for row in order[:_EXAMPLES]:
        yield queries[row], [(name, result.hits[row]) for name, result in results.items()]


NO_FIGURES = 'No figures: matplotlib is not installed (pip install "opencse[figures]").'
WIDTH = 4.6
"""Width of all figures in inches of 72 units: about that of a phone, so that texts stay readable."""
LEGEND_ROW = 0.22
"""Height of one row of a legend in inches; a figure grows by it for each row, so that none is cut off."""

_STYLE = Path(__file__).with_name("figures.mplstyle")
_COLOURS = {"paraphrase": "#1f7a5c", "negation": "#b8432f"}

Values = Sequence[float] | np.ndarray
Curve = Sequence[tuple[float, float]]
"""Step, or another number, and value; of a repeated step, the last counts."""
Draw = Callable[[], "Figure"]

logging.getLogger("matplotlib").setLevel(logging.ERROR)  # it warns of a home that it cannot write


def can_draw() -> bool:
    """Return whether matplotlib is installed."""
    return importlib.util.find_spec("matplotlib") is not None


def save(draw: Draw, target: Path | io.BytesIO) -> None:
    """Write a figure as SVG on a white ground; the same figure gives the same bytes."""
    from matplotlib import rc_context

    with rc_context(fname=_STYLE), warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="Glyph .* missing from"
        )  # a name in another script
        draw().savefig(target, format="svg", metadata={"Date": None}, facecolor="white")


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


def pictures(models: Mapping[str, ProbeScores]) -> Iterator[tuple[str, str, str]]:
    """Yield title, caption and SVG, as a `data:` address, of the figures for which there is data.

    The most informative comes first. Without matplotlib there are none.
    """
    results = {
        name: probed.transformations
        for name, probed in models.items()
        if probed.transformations is not None
    }
    if not results or not can_draw():
        return
    yield (
        "Which transformations does the model take for the same meaning?",
        "Mean cosine of a sentence with each transformation, 95 % interval. The paraphrase should be far to the right "
        "of the negation.",
        _address(partial(_draw_means, results)),
    )
    clouds = {
        name: {k.kind: (k.cosines, k.error_rates) for k in result.kinds if k.kind in _COLOURS}
        for name, result in results.items()
    }
    lowest = min(
        (min(cosines) for kinds in clouds.values() for cosines, _ in kinds.values()), default=0.0
    )
    for name, kinds in clouds.items():
        if kinds:
            yield (
                f"Similarity against wording: {shown(name, 40)}",
                "Each mark is one sentence. If only meaning counted, paraphrases would lie to the right and negations "
                "to the left, at any height.",
                _address(partial(draw_scatter, kinds, lowest)),
            )


def _address(draw: Draw) -> str:
    stream = io.BytesIO()
    save(draw, stream)
    return f"data:image/svg+xml;base64,{base64.b64encode(stream.getvalue()).decode()}"


def _draw_means(results: Mapping[str, Transformations]) -> Figure:
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


def draw_scatter(clouds: Mapping[str, tuple[Values, Values]], lowest: float) -> Figure:
    """Draw cosine against match error rate of pairs (OssCSE Figure 1).

    Args:
        clouds: By label, the cosines and the error rates of some pairs.
        lowest: Lower end of the cosine axis, which figures that are compared have in common.
    """
    plot, axes = empty_figure(3.0 + LEGEND_ROW * len(clouds))
    for index, (label, values) in enumerate(clouds.items()):
        colour, marker = _COLOURS.get(label, f"C{index}"), "oxs^D+"[index % 6]
        axes.scatter(
            *values, s=12, color=colour, marker=marker, alpha=0.65, linewidths=1, label=short(label)
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
