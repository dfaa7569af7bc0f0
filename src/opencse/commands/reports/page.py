"""The probe report: one self-contained HTML file, its figures as files, and the numbers as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from markupsafe import Markup

from opencse.commands.reports.drawing import can_draw, inline, save
from opencse.commands.reports.figures import Picture, pictures, strength_picture
from opencse.commands.reports.outcome import Outcome
from opencse.commands.reports.summary import cards, verdict
from opencse.commands.reports.tables import tables
from opencse.commands.reports.templates import output_folder, render_template
from opencse.commands.reports.text import shown
from opencse.evaluation.probes import ProbeScores, Retrieval
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import write_json, write_text
from opencse.foundation.result_table import Table
from opencse.training.strength import StrengthCurve
from opencse.version import __version__

_RELATIONS = {"paraphrase": "same meaning", "negation": "opposite", "other": "other sentence"}
_EXAMPLES = 6


def write_report(
    models: Mapping[str, ProbeScores],
    out: str | Path,
    *,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    notes: Sequence[str] = (),
    outcome: Outcome | None = None,
    curve: StrengthCurve | None = None,
) -> Path:
    """Write `report.html`, `probe.json`, and each figure as .svg and .png below `figures/`.

    Args:
        models: Scores by label, as `opencse.evaluation.probes.probe_encoders` returns them; the first model is the
            baseline.
        out: A folder, created if needed; files with these names are replaced.
        settings: By label, the settings that the scores depend on: weights hash, pooling, …
        notes: Remarks on the data: sets that were left out, rows that were sampled.
        outcome: What training changed, for a report on a run; its answers are the first lines of the page.
        curve: Scores by the strength of the trained model's meaning block.

    Returns:
        The path of the page.

    Raises:
        OpencseError: There is no model, or `out` is a file.
    """
    if not models:
        raise OpencseError("there is no model to report on", "Name at least one.")
    out = output_folder(out)
    write_json(
        out / "probe.json",
        {
            "version": __version__,
            "notes": list(notes),
            **({} if outcome is None else {"outcome": asdict(outcome)}),
            **({} if curve is None else {"strength": asdict(curve)}),
            "models": {
                name: {"settings": dict((settings or {}).get(name, {})), "scores": asdict(scores)}
                for name, scores in models.items()
            },
        },
    )
    for picture in _pictures(models, curve):
        save(picture.draw, out / "figures" / picture.name)
    write_text(out / "report.html", render(models, settings=settings, notes=notes, outcome=outcome, curve=curve))
    return out / "report.html"


def render(
    models: Mapping[str, ProbeScores],
    *,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    notes: Sequence[str] = (),
    outcome: Outcome | None = None,
    curve: StrengthCurve | None = None,
) -> str:
    """Return the page as text; every text of the user in it is escaped, clipped and kept to its own direction."""
    first = next(iter(settings.values()), {}) if settings else {}
    labels = [shown(name, 60) for name in models]
    rows = [(key, *(shown((settings or {}).get(name, {}).get(key, ""), 80) for name in models)) for key in first]
    figures = enumerate(_pictures(models, curve))
    return render_template(
        "report.html.j2",
        outcome=outcome,
        names=labels,
        verdict=verdict(models),
        cards=cards(models),
        pictures=[(picture, Markup(inline(picture.draw, f"f{i}"))) for i, picture in figures],
        tables=[*([] if curve is None else [curve.table()]), *tables(models)],
        examples=_examples(models),
        settings=Table(("", *labels), rows) if rows else None,
        notes=[shown(note, 400) for note in notes],
    )


def _pictures(models: Mapping[str, ProbeScores], curve: StrengthCurve | None) -> list[Picture]:
    of_strength = [] if curve is None or not can_draw() else [strength_picture(curve)]
    return [*of_strength, *pictures(models)]


def _examples(models: Mapping[str, ProbeScores]) -> list[dict[str, Any]]:
    """Return queries with the hits of each model: (text, relation, label of the relation, cosine).

    First those on which the models differ, then as many failures as successes (as in DiffCSE Table 9).
    """
    results = {name: found.retrieval for name, found in models.items() if found.retrieval and found.retrieval.queries}
    found = []
    for row in _chosen(list(results.values())) if results else ():
        hits = {
            name: [
                (shown(hit.text), hit.relation, _RELATIONS[hit.relation], f"{hit.cosine:.2f}") for hit in each.hits[row]
            ]
            for name, each in results.items()
        }
        query = next(iter(results.values())).queries[row]
        found.append({"query": shown(query), "columns": [(shown(name, 40), each) for name, each in hits.items()]})
    return found


def _chosen(results: list[Retrieval], count: int = _EXAMPLES) -> list[int]:
    """Return rows spread over the file, grouped by the relation of the first hit."""
    outcomes = [tuple(r.hits[row][0].relation for r in results) for row in range(len(results[0].queries))]
    differ = [row for row, each in enumerate(outcomes) if len(set(each)) > 1]
    fooled = [row for row, each in enumerate(outcomes) if set(each) == {"negation"}]
    right = [row for row, each in enumerate(outcomes) if set(each) == {"paraphrase"}]
    taken = _spread(differ, count // 2 if fooled or right else count)
    taken += _spread(fooled, (count - len(taken) + 1) // 2)
    return taken + _spread(right, count - len(taken))


def _spread(rows: list[int], count: int) -> list[int]:
    """Return at most `count` of the rows, evenly spaced."""
    count = min(count, len(rows))
    return [rows[i * len(rows) // count] for i in range(count)]
