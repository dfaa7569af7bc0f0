"""The probe report: one self-contained HTML file, its figures as files, and the numbers as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from markupsafe import Markup

from opencse.commands.reports.drawing import inline, save
from opencse.commands.reports.examples import examples
from opencse.commands.reports.outcome import Outcome
from opencse.commands.reports.pictures import Picture, report_pictures
from opencse.commands.reports.summary import cards, verdict
from opencse.commands.reports.tables import tables
from opencse.commands.reports.templates import output_folder, render_template
from opencse.commands.reports.text import shown
from opencse.evaluation.probes import ProbeScores
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import write_json, write_text
from opencse.foundation.result_table import Table
from opencse.version import __version__


def write_report(
    models: Mapping[str, ProbeScores],
    out: str | Path,
    *,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    notes: Sequence[str] = (),
    outcome: Outcome | None = None,
) -> Path:
    """Write `report.html`, `probe.json`, and each figure as .svg and .png below `figures/`.

    Args:
        models: Scores by label, as `opencse.evaluation.probes.probe_encoders` returns them; the first model is the
            baseline.
        out: A folder, created if needed; files with these names are replaced.
        settings: By label, the settings that the scores depend on: weights hash, pooling, …
        notes: Remarks on the data: sets that were left out, rows that were sampled.
        outcome: What training changed, for a report on a run; its answers are the first lines of the page.

    Returns:
        The path of the page.

    Raises:
        OpencseError: There is no model, or `out` is a file.
    """
    if not models:
        raise OpencseError("there is no model to report on", "Name at least one.")
    out = output_folder(out)
    pictures = report_pictures(models)
    write_json(
        out / "probe.json",
        {
            "version": __version__,
            "notes": list(notes),
            **({} if outcome is None else {"outcome": asdict(outcome)}),
            "models": {
                name: {"settings": dict((settings or {}).get(name, {})), "scores": asdict(scores)}
                for name, scores in models.items()
            },
        },
    )
    for picture in pictures:
        save(picture.draw, out / "figures" / picture.name)
    write_text(out / "report.html", render(models, settings=settings, notes=notes, pictures=pictures, outcome=outcome))
    return out / "report.html"


def render(
    models: Mapping[str, ProbeScores],
    *,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    notes: Sequence[str] = (),
    pictures: Sequence[Picture] | None = None,
    outcome: Outcome | None = None,
) -> str:
    """Return the page as text; every text of the user in it is escaped, clipped and kept to its own direction."""
    chosen = report_pictures(models) if pictures is None else pictures
    first = next(iter(settings.values()), {}) if settings else {}
    labels = [shown(name, 60) for name in models]
    rows = [(key, *(shown((settings or {}).get(name, {}).get(key, ""), 80) for name in models)) for key in first]
    return render_template(
        "report.html.j2",
        outcome=outcome,
        names=labels,
        verdict=verdict(models),
        cards=cards(models),
        pictures=[(picture, Markup(inline(picture.draw, f"f{i}"))) for i, picture in enumerate(chosen)],
        tables=tables(models),
        examples=examples(models),
        settings=Table(("", *labels), rows) if rows else None,
        notes=[shown(note, 400) for note in notes],
    )
