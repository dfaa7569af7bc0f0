"""Pages from Jinja templates next to their data, and the report of a run or a probe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from opencse.commands.reports.charts import (
    draw_changes,
    draw_means,
    draw_strength,
    figure_address,
)
from opencse.commands.reports.examples import Example
from opencse.commands.reports.tables import (
    Comparison,
    definitions,
    headline_rows,
    tables,
)
from opencse.debias.strength import StrengthCurve
from opencse.evaluation.probes import ProbeScores
from opencse.evaluation.probes.probes import RetrievedText
from opencse.foundation.errors import OpencseError
from opencse.foundation.figures import COLOURS, NO_FIGURES, can_draw, draw_scatter
from opencse.foundation.files import write_json, write_text
from opencse.foundation.page_text import shown
from opencse.foundation.result_table import Table
from opencse.version import __version__

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
            figure_address(partial(draw_changes, ordered)),
        )
    if curve is not None and len(curve.strengths) > 1:
        yield (
            "What each strength gains and costs",
            "Solid lines are measures of meaning, dashed lines are guards. The gray band is what a guard may lose.",
            figure_address(partial(draw_strength, curve)),
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
        figure_address(partial(draw_means, results)),
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
                figure_address(partial(draw_scatter, kinds, lowest)),
            )
