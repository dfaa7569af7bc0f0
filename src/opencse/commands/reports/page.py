"""Pages from Jinja templates next to their data, and the report of a run or a probe."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from opencse.commands.reports.charts import (
    Chart,
    chart,
    draw_changes,
    draw_means,
    draw_strength,
    measure_name,
)
from opencse.commands.reports.examples import Example
from opencse.commands.reports.tables import (
    Change,
    Comparison,
    definition,
    headline_rows,
    tables,
)
from opencse.debias.strength import StrengthCurve
from opencse.evaluation.probes import ProbeScores, Transformations
from opencse.evaluation.probes.probes import RetrievedText
from opencse.foundation.errors import OpencseError
from opencse.foundation.figures import COLOURS, NO_FIGURES, Values, can_draw, draw_scatter
from opencse.foundation.files import write_json, write_text
from opencse.foundation.page_text import shown
from opencse.foundation.result_table import Number, Table
from opencse.version import __version__

_EXAMPLES = 5
# What each headline number means.
_HEADLINES = {
    "Paraphrase above negation": "Share of sentences whose paraphrase in other words has a higher cosine than their "
    "negation in nearly the same words. 100 % is right; below 50 %, wording counts more than meaning.",
    "Agreement where wording misleads": "Spearman correlation with the scores that people gave, on pairs with the "
    "same meaning in other words or another meaning in similar words (Oppn.). 1 is right.",
    "Agreement where wording helps": "The same on all other pairs (Cont.).",
}


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
    environment.filters["number"] = _two_digits
    return environment.get_template(name).render(version=__version__, **values)


def _two_digits(value: float, *, signed: bool = False) -> str:
    return str(Number(value, 2, signed=signed))


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
    own_texts: Sequence[str] = (),
) -> Path:
    """Write `report.html` and `probe.json`; every text of the user in the page is escaped and clipped.

    Args:
        models: Scores by label; the first model is the baseline.
        out: A folder, created if needed; files with these names are replaced.
        notes: Remarks on the data: sets that were left out, rows that were sampled.
        comparison: How two models differ; its answers are the first lines of the page.
        curve: Scores by the strength of the trained model's meaning block.
        pairs: Examples of texts with a right and a wrong candidate.
        own_texts: What `opencse check` finds on the user's documents, a line for each model.

    Returns:
        The path of the page.

    Raises:
        OpencseError: `out` is a file.
    """
    data: dict[str, Any] = {"notes": notes, "models": _scores_by_model(models)}
    if comparison is not None:
        data["outcome"] = asdict(comparison)
    if curve is not None:
        data["strength"] = asdict(curve)
    if own_texts:
        data["own texts"] = own_texts
    if pairs:
        data["examples"] = [asdict(example) for example in pairs]

    measures = []
    if comparison is not None:
        measures = measure_groups(comparison.changes)
    no_figures = ""
    if not can_draw():
        no_figures = NO_FIGURES
    strengths = None
    if curve is not None:
        strengths = curve.table()
    labels = [shown(name, 60) for name in models]
    page = render_template(
        "report.html.j2",
        comparison=comparison,
        verdict=wording_verdict(models),
        charts=list(_charts(comparison, curve)),
        measures=measures,
        pairs=pairs,
        own_texts=own_texts,
        names=labels,
        headlines=_headlines(labels, models, compared=comparison is not None),
        pictures=list(pictures(models)),
        no_figures=no_figures,
        strengths=strengths,
        tables=tables(models),
        examples=list(_examples(models)),
        meanings={"paraphrase": "same meaning", "negation": "opposite", "other": "other sentence"},
        settings=_settings_table(labels, models),
        notes=notes,
    )
    return write_page(out, "report", page, data, file="probe.json")


def _scores_by_model(models: Mapping[str, ProbeScores]) -> dict[str, Any]:
    """Return settings and scores of each model as plain data, the settings apart."""
    found = {}
    for name, probed in models.items():
        scores = probed.plain()
        settings = scores.pop("settings")
        found[name] = {"settings": settings, "scores": scores}
    return found


def _settings_table(labels: Sequence[str], models: Mapping[str, ProbeScores]) -> Table | None:
    """Return the settings of the measurement side by side; None if none are known."""
    keys = next(iter(models.values())).settings
    rows = []
    for key in keys:
        values = [shown(probed.settings[key], 80) for probed in models.values()]
        rows.append((key, *values))
    if not rows:
        return None
    return Table(("", *labels), rows)


def _headlines(
    labels: Sequence[str], models: Mapping[str, ProbeScores], *, compared: bool
) -> Table:
    """Return the headline numbers, each defined in a line; without those that a comparison of two models has."""
    rows = []
    notes = []
    for row in headline_rows(models):
        title = str(row[0])
        if compared and len(models) == 2 and title == "Paraphrase above negation":
            continue
        rows.append(row)
        notes.append(f"{title}: {_HEADLINES[title]}")
    return Table(("", *labels), rows, notes=notes)


def wording_verdict(models: Mapping[str, ProbeScores]) -> str:
    """Return in one sentence whether models follow wording or meaning; empty if that was not measured."""
    parts = []
    for name, scores in models.items():
        if scores.transformations is None:
            continue
        above = scores.transformations.paraphrase_above_negation
        if above.value is None or above.low is None or above.high is None:
            continue
        follows = "cannot be told apart from chance"
        if above.low > 0.5:
            follows = "follows meaning more often than wording"
        elif above.high < 0.5:
            follows = "follows wording"
        parts.append(
            f"{shown(name, 60)} {follows}: a paraphrase ranks above a negation in "
            f"{100 * above.value:.0f} of 100 sentences"
        )
    if not parts:
        return ""
    return f"{'; '.join(parts)}."


@dataclass(frozen=True, kw_only=True)
class Measure:
    """A measure of a report, in the words of the page.

    Attributes:
        name: Its name.
        meaning: What it means, in a line; empty if the name is enough.
        before: Score of the untouched model.
        after: Score of the trained model.
        change: The difference in points, with its interval if there is one.
    """

    name: str
    meaning: str
    before: str
    after: str
    change: str


def measure_groups(changes: Sequence[Change]) -> list[tuple[str, list[Measure]]]:
    """Return the measures that got better, worse, and neither, the largest changes first."""
    groups: dict[str, list[Measure]] = {"Better": [], "Worse": [], "No clear change": []}
    for change in sorted(changes, key=lambda change: -abs(change.after - change.before)):
        if not change.changed:
            title = "No clear change"
        elif change.after > change.before:
            title = "Better"
        else:
            title = "Worse"
        points = str(Number(change.after - change.before, 1, signed=True))
        if change.spread:
            # The head of the column names the interval.
            points += f" ({change.spread.removeprefix('95 % interval ')})"
        measure = Measure(
            name=measure_name(change.measure),
            meaning=definition(change.measure),
            before=str(Number(change.before, 1)),
            after=str(Number(change.after, 1)),
            change=points,
        )
        groups[title].append(measure)
    return [(title, measures) for title, measures in groups.items() if measures]


def _charts(comparison: Comparison | None, curve: StrengthCurve | None) -> Iterator[Chart]:
    """Yield the figures of what changed and of what each strength costs."""
    if not can_draw():
        return
    if comparison is not None and comparison.changes:
        ordered = sorted(comparison.changes, key=lambda change: change.before - change.after)
        yield chart(
            "Before and after",
            "One line for each measure, the largest gain at the top. Green got better, red got worse, gray is no clear "
            "change. More is better in all of them.",
            partial(draw_changes, ordered),
        )
    if curve is not None and len(curve.strengths) > 1:
        yield chart(
            "How strong is the meaning vector?",
            "To the right, meaning counts more. Solid lines are measures of meaning. Dashed lines are guards, which "
            "check ordinary search and classification; they may fall into the gray band, but not below it.",
            partial(draw_strength, curve),
        )


def _examples(
    models: Mapping[str, ProbeScores],
) -> Iterator[tuple[str, list[tuple[str, Sequence[RetrievedText]]]]]:
    """Yield a few queries with the hits of each model.

    First come those on which the models differ; of these, then of the others, those for which the
    first model finds the negation first (as in DiffCSE Table 9).
    """
    results = {}
    for name, probed in models.items():
        if probed.retrieval:
            results[name] = probed.retrieval
    if not results:
        return

    def place(row: int) -> tuple[bool, bool]:
        first = [result.hits[row][0].relation for result in results.values()]
        models_agree = len(set(first)) == 1
        # False sorts before True.
        return models_agree, first[0] != "negation"

    queries = next(iter(results.values())).queries
    for row in sorted(range(len(queries)), key=place)[:_EXAMPLES]:
        hits: list[tuple[str, Sequence[RetrievedText]]] = []
        for name, result in results.items():
            hits.append((name, result.hits[row]))
        yield queries[row], hits


def pictures(models: Mapping[str, ProbeScores]) -> Iterator[Chart]:
    """Yield the figures for which there is data, the most informative first. Without matplotlib there are none."""
    results = {}
    for name, probed in models.items():
        if probed.transformations is not None:
            results[name] = probed.transformations
    if not results or not can_draw():
        return
    yield chart(
        "Which changes of a sentence does a model take for the same meaning?",
        "Mean cosine of a sentence with each changed version, with its 95 % interval. The paraphrase should be far to "
        "the right of the negation.",
        partial(draw_means, results),
    )
    clouds = {name: _cloud(result) for name, result in results.items()}
    # The figures of all models have one axis, or they could not be compared.
    lowest = 0.0
    all_cosines = [cosines for kinds in clouds.values() for cosines, _ in kinds.values()]
    if all_cosines:
        lowest = min(min(cosines) for cosines in all_cosines)
    for name, kinds in clouds.items():
        if kinds:
            yield chart(
                f"Similarity against wording: {shown(name, 40)}",
                "Each mark is a sentence and a version of it; higher up, more of its words are different. If only "
                "meaning counted, paraphrases would lie to the right and negations to the left, at any height.",
                partial(draw_scatter, kinds, lowest),
            )


def _cloud(result: Transformations) -> dict[str, tuple[Values, Values]]:
    """Return cosines and error rates of the paraphrases and of the negations."""
    found: dict[str, tuple[Values, Values]] = {}
    for kind in result.kinds:
        if kind.kind in COLOURS:
            found[kind.kind] = (kind.cosines, kind.error_rates)
    return found
