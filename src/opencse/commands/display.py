"""Results of several commands, as tables and lines for a terminal or a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text
from sentence_transformers import SentenceTransformer

from opencse.commands.reports.outcome import Outcome
from opencse.commands.reports.summary import headline_rows
from opencse.commands.reports.tables import triplet_rows
from opencse.encoder.names import resolve
from opencse.evaluation.probes import ProbeScores
from opencse.foundation.result_table import Cell, Number, Table
from opencse.text.views.pair_statistics import PUBLISHED, pair_statistics

if TYPE_CHECKING:
    from opencse.training.train import TrainingRun


def run_lines(run: TrainingRun) -> RenderableType:
    """Return steps, time, the score of the kept weights, warnings that are new, and how to load the model."""
    return Group(Text(training_line(run)), *_warnings(run), _model(run))


def training_line(run: TrainingRun) -> str:
    """Return the steps and the time of a training, and the score of the weights that were kept."""
    outcome = run.outcome
    line = f"{outcome.steps:,} step{'' if outcome.steps == 1 else 's'} in {outcome.seconds:,.0f} s"
    if outcome.best_score is not None:
        line += f"; kept step {outcome.best_step:,}, development Spearman {outcome.best_score:.2f}"
        line += f" (before training {outcome.first_score:.2f})" if outcome.first_score is not None else ""
    return line


def outcome_lines(
    outcome: Outcome, scores: Mapping[str, ProbeScores], run: TrainingRun, report: Path
) -> RenderableType:
    """Return whether the model is better, its headline figures, the paths, and the commands that come next."""
    rows = [*headline_rows(scores)[:2], *_agreement(scores)]
    measured: list[RenderableType] = [Table(["", *scores], rows), Text("")] if rows else []
    steps = Table(
        ("", ""),
        [
            ("  opencse check MODEL --texts DOCS", "does your model follow wording or meaning on your texts?"),
            (f"  opencse run {run.recipe.name} DOCS --backbone MODEL -o OUT", "train it on them"),
            ("  opencse compare MODEL OUT --texts DOCS -o JUDGE", "which of your searches change?"),
        ],
    )
    return Group(
        outcome.table(),
        *_warnings(run),
        Text(""),
        *measured,
        _model(run),
        _line(f"report: {report}"),
        Text("next, with your own model and texts:"),
        steps,
    )


def probe_tables(models: Mapping[str, ProbeScores], outcome: Outcome | None, page: Path | None) -> RenderableType:
    """Return the headline figures of a probe, how two models differ, and the path of the report."""
    triplets = triplet_rows(
        [each.triplets for each in models.values() if each.triplets], columns=("grade", "opposites", "form")
    )
    rows = [*headline_rows(models), *([f"Paraphrase nearer: {label}", *rates] for label, _, *rates in triplets)]
    differ: list[RenderableType] = [] if outcome is None else [Text(""), outcome.table()]
    return Group(Table(["", *models], rows), *differ, *([] if page is None else [_line(f"report: {page}")]))


def statistics_tables(views: str | Path, model: str | None) -> Iterator[Table]:
    """Yield overlap and cosine of the pairs in built views, and the published figures.

    Args:
        views: A folder of built views.
        model: An embedding model for the cosines; None for those that were recorded for mined sentences.
    """
    encode = None if model is None else SentenceTransformer(resolve(model), trust_remote_code=False).encode
    rows: list[list[Cell]] = []
    notes = []
    for column in pair_statistics(views, encode=encode):
        row: list[Cell] = [column.column, column.rows, Number(100 * column.nulls / max(column.rows, 1), 1, " %")]
        for values in (column.overlap, column.error_rate, column.cosine):
            row += [Number(values.mean, 3), values.bar_chart()] if values else ["", ""]
        rows.append(row)
        if column.rules:
            notes.append(f"{column.column}: {', '.join(f'{rule} {count:,}' for rule, count in column.rules.items())}")
    heads = ("column", "rows", "null", "overlap", "0 → 1", "MER", "0 → 1", "cosine", "-1 → 1")
    yield Table(heads, rows, "Pairs of each sentence with its views", notes)
    published = [(name, Number(values[0]), Number(values[1])) for name, values in PUBLISHED.items()]
    title = "Mean lexical overlap as published (DebCSE, Tables 1 and 4)"
    yield Table(("training pairs", "positive", "negative"), published, title)


def _agreement(scores: Mapping[str, ProbeScores]) -> list[list[Cell]]:
    """Return the mean Spearman correlation with people's scores as a row; none without scored pairs."""
    row: list[Cell] = ["Agreement with people, Spearman × 100"]
    for each in scores.values():
        known = [task.score for task in each.sts if task.score is not None]
        row.append(Number(fmean(known) if known and len(known) == len(each.sts) else None))
    return [row] if all(each.sts for each in scores.values()) else []


def _warnings(run: TrainingRun) -> list[Text]:
    return [Text(f"warning: {each}") for each in run.warnings if each not in run.early_warnings]


def _model(run: TrainingRun) -> Text:
    trust = "" if run.recipe.block is None else ", trust_remote_code=True"
    return _line(f'model: {run.model}   load it with SentenceTransformer("{run.model}"{trust})')


def _line(text: str) -> Text:
    """Return a text with a path in it, which is never cut."""
    return Text(text, overflow="fold", no_wrap=True)
