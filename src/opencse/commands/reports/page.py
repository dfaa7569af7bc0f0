"""Pages from Jinja templates beside their data, and the probe report: one self-contained HTML file."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from opencse.commands.reports.figures import NO_FIGURES, can_draw, pictures
from opencse.commands.reports.tables import Outcome, headline_rows, shown, tables
from opencse.evaluation.probes import ProbeScores
from opencse.evaluation.probes.probes import RetrievedText
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import write_json, write_text
from opencse.foundation.result_table import Table
from opencse.training.strength import StrengthCurve
from opencse.version import __version__

_EXAMPLES = 6
_RIGHT = (
    "Right are 100 % paraphrases above negations and no negation first; below 50 %, wording counts more than meaning."
)


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


def write_page(out: str | Path, name: str, page: str, data: Mapping[str, Any], file: str = "") -> Path:
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
    plain = {name: asdict(found) for name, found in models.items()}
    scores = {name: {"settings": each.pop("settings"), "scores": each} for name, each in plain.items()}
    data: dict[str, Any] = {"notes": notes, "models": scores}
    data |= {} if outcome is None else {"outcome": asdict(outcome)}
    data |= {} if curve is None else {"strength": asdict(curve)}
    labels = [shown(name, 60) for name in models]
    keys = next(iter(models.values())).settings
    rows = [(key, *(shown(each.settings[key], 80) for each in models.values())) for key in keys]
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


def _examples(models: Mapping[str, ProbeScores]) -> Iterator[tuple[str, list[tuple[str, Sequence[RetrievedText]]]]]:
    """Yield a few queries with the hits of each model.

    First come those on which the models differ, then those that find the negation first (as in DiffCSE Table 9).
    """
    results = {name: found.retrieval for name, found in models.items() if found.retrieval}
    if not results:
        return
    queries = next(iter(results.values())).queries
    first = [[each.hits[row][0].relation for each in results.values()] for row in range(len(queries))]
    order = sorted(range(len(queries)), key=lambda row: (len(set(first[row])) == 1, first[row][0] != "negation"))
    for row in order[:_EXAMPLES]:
        yield queries[row], [(name, each.hits[row]) for name, each in results.items()]
