"""The probe report: one self-contained HTML file, its figures as files, and the numbers as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from markupsafe import Markup

from opencse.commands.reports.drawing import inline, save
from opencse.commands.reports.figures import pictures
from opencse.commands.reports.outcome import Outcome
from opencse.commands.reports.summary import cards
from opencse.commands.reports.tables import tables
from opencse.commands.reports.templates import output_folder, render_template, write_page
from opencse.commands.reports.text import shown
from opencse.evaluation.probes import ProbeScores
from opencse.foundation.errors import OpencseError
from opencse.foundation.result_table import Table
from opencse.training.strength import StrengthCurve

_RELATIONS = {"paraphrase": "same meaning", "negation": "opposite", "other": "other sentence"}
_EXAMPLES = 6
Settings = Mapping[str, Mapping[str, Any]]
"""By label of the model, the settings that the scores depend on: weights hash, pooling, …"""


def write_report(
    models: Mapping[str, ProbeScores],
    out: str | Path,
    *,
    settings: Settings | None = None,
    notes: Sequence[str] = (),
    outcome: Outcome | None = None,
    curve: StrengthCurve | None = None,
) -> Path:
    """Write `report.html`, `probe.json`, and each figure as .svg and .png below `figures/`.

    Args:
        models: Scores by label, as `opencse.evaluation.probes.probe_encoders` returns them; the first model is the
            baseline.
        out: A folder, created if needed; files with these names are replaced.
        settings: The settings of each model.
        notes: Remarks on the data: sets that were left out, rows that were sampled.
        outcome: How two models differ; its answers are the first lines of the page.
        curve: Scores by the strength of the trained model's meaning block.

    Returns:
        The path of the page.

    Raises:
        OpencseError: There is no model, or `out` is a file.
    """
    if not models:
        raise OpencseError("there is no model to report on", "Name at least one.")
    out, settings = output_folder(out), settings or {}
    scores = {name: {"settings": settings.get(name, {}), "scores": asdict(found)} for name, found in models.items()}
    data: dict[str, Any] = {"notes": notes, "models": scores}
    data |= {} if outcome is None else {"outcome": asdict(outcome)}
    data |= {} if curve is None else {"strength": asdict(curve)}
    for picture in pictures(models):
        save(picture.draw, out / "figures" / picture.name)
    page = render(models, settings=settings, notes=notes, outcome=outcome, curve=curve)
    return write_page(out, "report", page, data, file="probe.json")


def render(
    models: Mapping[str, ProbeScores],
    *,
    settings: Settings | None = None,
    notes: Sequence[str] = (),
    outcome: Outcome | None = None,
    curve: StrengthCurve | None = None,
) -> str:
    """Return the page as text; every text of the user in it is escaped, clipped and kept to its own direction."""
    labels = [shown(name, 60) for name in models]
    of_models = [(settings or {}).get(name, {}) for name in models]
    rows = [(key, *(shown(each.get(key, ""), 80) for each in of_models)) for key in of_models[0]]
    return render_template(
        "report.html.j2",
        outcome=outcome,
        names=labels,
        cards=cards(models),
        pictures=[(each, Markup(inline(each.draw, f"f{i}"))) for i, each in enumerate(pictures(models))],
        tables=[*([] if curve is None else [curve.table()]), *tables(models)],
        examples=list(_examples(models)),
        settings=Table(("", *labels), rows) if rows else None,
        notes=[shown(note, 400) for note in notes],
    )


def _examples(
    models: Mapping[str, ProbeScores],
) -> Iterator[tuple[str, list[Any]]]:
    """Yield a few queries with the hits of each model: text, relation, its label, and cosine.

    First come those on which the models differ, then those that find the negation first (as in DiffCSE Table 9).
    """
    results = {shown(name, 40): found.retrieval for name, found in models.items() if found.retrieval}
    if not results:
        return
    queries = next(iter(results.values())).queries
    first = [[each.hits[row][0].relation for each in results.values()] for row in range(len(queries))]
    order = sorted(range(len(queries)), key=lambda row: (len(set(first[row])) == 1, first[row][0] != "negation"))
    for row in order[:_EXAMPLES]:
        columns = [
            (
                name,
                [
                    (shown(hit.text), hit.relation, _RELATIONS[hit.relation], f"{hit.cosine:.2f}")
                    for hit in each.hits[row]
                ],
            )
            for name, each in results.items()
        ]
        yield shown(queries[row]), columns
