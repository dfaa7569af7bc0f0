"""Pages from Jinja templates next to their data, the probe report, and figures as SVG, also those of reproductions."""

from __future__ import annotations

import base64
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from opencse.commands.reports.examples import Example
from opencse.commands.reports.tables import (
    Change,
    Comparison,
    definitions,
    headline_rows,
    tables,
)
from opencse.debias.strength import StrengthCurve
from opencse.evaluation.probes import ProbeScores, Transformations
from opencse.evaluation.probes.probes import RetrievedText
from opencse.foundation.errors import OpencseError
from opencse.foundation.figures import (
    COLOURS,
    LEGEND_ROW,
    NO_FIGURES,
    Draw,
    can_draw,
    draw_scatter,
    empty_figure,
    legend,
    save,
    short,
)
from opencse.foundation.files import write_json, write_text
from opencse.foundation.page_text import shown
from opencse.foundation.result_table import Table
from opencse.version import __version__

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_EXAMPLES = 6
_RIGHT = "Right are 100 % paraphrases above negations and no negation first; below 50 %, wording counts more than meaning."


def render_template(name: str, **values: Any) -> str:
    """Return a page as text; every value in it is escaped unless it is `Markup` or a `Table`.

    Args:
        name: Template file in this folder.
        **values: Variables of the template, next to `version`.
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
    comparison: Comparison | None = None,
    curve: StrengthCurve | None = None,
    pairs: Sequence[Example] = (),
) -> Path:
    """Write `report.html` and `probe.json`; every text of the user in the page is escaped and clipped.

    Args:
        models: Scores by label; the first model is the baseline.
        out: A folder, created if needed; files with these names are replaced.
        notes: Remarks on the data: sets that were left out, rows that were sampled.
        comparison: How two models differ; its answers are the first lines of the page.
        curve: Scores by the strength of the trained model's meaning block.
        pairs: Examples of texts with a right and a wrong candidate.

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
    data |= {} if comparison is None else {"outcome": asdict(comparison)}
    data |= {} if curve is None else {"strength": asdict(curve)}
    if pairs:
        data["examples"] = [asdict(example) for example in pairs]
    labels = [shown(name, 60) for name in models]
    keys = next(iter(models.values())).settings
    rows = [(key, *(shown(probed.settings[key], 80) for probed in models.values())) for key in keys]
    page = render_template(
        "report.html.j2",
        comparison=comparison,
        charts=list(_charts(comparison, curve)),
        definitions=[] if comparison is None else definitions(comparison.changes),
        pairs=pairs,
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


def _charts(
    comparison: Comparison | None, curve: StrengthCurve | None
) -> Iterator[tuple[str, str, str]]:
    """Yield title, caption and SVG, as a `data:` address, of what changed and of what each strength costs."""
    if not can_draw():
        return
    if comparison is not None and comparison.changes:
        ordered = sorted(comparison.changes, key=lambda change: change.before - change.after)
        yield (
            "Before and after",
            "Each line is a measure, the largest gain at the top. Gray changes are within chance.",
            _address(partial(draw_changes, ordered)),
        )
    if curve is not None and len(curve.strengths) > 1:
        yield (
            "What each strength gains and costs",
            "Solid lines are measures of meaning, dashed lines are guards. The gray band is what a guard may lose.",
            _address(partial(draw_strength, curve)),
        )


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
        name: {k.kind: (k.cosines, k.error_rates) for k in result.kinds if k.kind in COLOURS}
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


_GAIN = "#1f7a5c"
_LOSS = "#b8432f"
_NEUTRAL = "#8a93a0"
_ROW = 0.34
"""Height of one measure in inches."""


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
    axes.set_yticks(range(len(changes)), [short(change.measure, 34) for change in changes])
    axes.invert_yaxis()
    axes.margins(x=0.06)
    axes.set_xlabel("before (white) and after, in points")
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
