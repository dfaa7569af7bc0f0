"""Results of several commands, as tables and lines for a terminal or a notebook."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from opencse.commands.reports.outcome import Outcome
from opencse.commands.reports.summary import cards, verdict
from opencse.commands.reports.tables import triplet_rows
from opencse.evaluation.probes import ProbeScores
from opencse.foundation.result_table import Cell, Number, Table

if TYPE_CHECKING:
    from opencse.training import TrainingRun


def run_lines(run: TrainingRun) -> RenderableType:
    """Return steps, time, the score of the kept weights, warnings that are new, and how to load the model."""
    return Group(Text(training_line(run)), *_warnings(run), _path("model", run.model, _loading(run.model)))


def training_line(run: TrainingRun) -> str:
    """Return the steps and the time of a training, and the score of the weights that were kept."""
    outcome = run.outcome
    line = f"{outcome.steps:,} step{'' if outcome.steps == 1 else 's'} in {outcome.seconds:,.0f} s"
    if outcome.best_score is not None:
        share = "" if outcome.share == 1 else f"{outcome.share:.0%} of the way to "
        line += f"; kept {share}step {outcome.best_step:,}, development Spearman {outcome.best_score:.2f}"
        line += f" (before training {outcome.first_score:.2f})" if outcome.first_score is not None else ""
    return line


def outcome_lines(
    outcome: Outcome, scores: Mapping[str, ProbeScores], run: TrainingRun, report: Path
) -> RenderableType:
    """Return whether the model is better, its headline figures, the paths, and the commands that come next."""
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
        headline_table(scores, 3),
        Text(""),
        _path("model", run.model, _loading(run.model)),
        _path("report", report),
        Text("next, with your own model and texts:"),
        steps,
    )


def headline_table(models: Mapping[str, ProbeScores], most: int | None = None) -> Table:
    """Return the headline figures of a probe with the models side by side.

    Args:
        models: Scores by label.
        most: Maximum number of rows; None for all.
    """
    rows = [(card.title, {name: value for name, value, _ in card.values}) for card in cards(dict(models))][:most]
    names = list(max((values for _, values in rows), key=len, default={}))
    return Table(["", *names], [[title, *(values.get(name, "") for name in names)] for title, values in rows])


def probe_tables(models: Mapping[str, ProbeScores], page: Path | None = None) -> RenderableType:
    """Return the headline figures and conclusions of a probe, and the path of the report.

    Args:
        models: Scores by label.
        page: The report.
    """
    table = headline_table(models)
    triplets = triplet_rows(models, columns=("grade", "opposites", "form"))
    rows = [*table.rows, *([f"Paraphrase nearer: {label}", *rates] for label, _, *rates in triplets)]
    path = [] if page is None else [_path("report", page)]
    return Group(Table(["", *models], rows), *map(Text, verdict(dict(models))), *path)


def statistics_tables(views: str | Path, model: str | None) -> Iterator[RenderableType]:
    """Yield the overlap and cosine of the pairs in built views, the published figures, and the rules that made them.

    Args:
        views: A folder of built views.
        model: An embedding model for the cosines; None for none.
    """
    from opencse.text.views.pair_statistics import PUBLISHED, bar_chart, pair_statistics

    encode = None
    if model is not None:
        from sentence_transformers import SentenceTransformer

        from opencse.encoder.names import resolve

        encode = SentenceTransformer(resolve(model)).encode
    found = pair_statistics(views, encode=encode)
    rows: list[list[Cell]] = []
    for column in found:
        row: list[Cell] = [column.column, column.rows, Number(100 * column.nulls / max(column.rows, 1), 1, " %")]
        for each in (column.overlap, column.error_rate, column.cosine):
            row += [Number(each.mean, 3), bar_chart(each)] if each else ["", ""]
        rows.append(row)
    rules = [", ".join(f"{rule} {count:,}" for rule, count in column.rules.items()) for column in found]
    yield Table(
        ("column", "rows", "null", "overlap", "0 → 1", "MER", "0 → 1", "cosine", "-1 → 1"),
        rows,
        "Pairs of each sentence with its views",
        [f"{column.column}: {each}" for column, each in zip(found, rules, strict=True) if each],
    )
    yield Table(
        ("training pairs", "positive", "negative"),
        [(name, *map(Number, values)) for name, values in PUBLISHED.items()],
        "Mean lexical overlap as published (DebCSE, Tables 1 and 4)",
    )


def draws_table(views: str | Path, pairs: str | None, near: float) -> Table | None:
    """Return the similarity of drawn sentences to their rows; None if no column of the views was mined.

    Args:
        views: A folder of built views.
        pairs: A file of scored pairs, to count known near-duplicates among the drawn; None for none.
        near: Minimum score of a near-duplicate.
    """
    from opencse.evaluation import read_pairs
    from opencse.text import demo
    from opencse.text.mined import draw_report

    known = []
    if pairs is not None:
        scored = read_pairs(demo.pairs(pairs))
        known = list(zip(scored.sentence1, scored.sentence2, scored.scores, strict=True))
    rows: list[list[Cell]] = []
    for each in draw_report(views, pairs=known, near=near):
        spans = [f"{values[0]:.2f} to {values[-1]:.2f}" for values in each.quantiles.values()]
        means: list[Cell] = [Number(mean, 3, aside=span) for mean, span in zip(each.mean.values(), spans, strict=True)]
        counts = [each.known, each.near_duplicates] if known else []
        rows.append([each.column, f"{each.drawn:,} of {each.rows:,}", *(means or ["", "", ""]), *counts])
    scored_heads = ["scored", f"score ≥ {near:g}"] if known else []
    heads = ["column", "drawn", "cosine", "MER", "overlap", *scored_heads]
    return Table(heads, rows, "Drawn sentences: mean (5th to 95th percentile)") if rows else None


def _warnings(run: TrainingRun) -> list[Text]:
    return [Text(f"warning: {each}") for each in run.warnings if each not in run.early_warnings]


def _path(name: str, path: Path, remark: str = "") -> Text:
    return Text(f"{name}: {path}{remark}", overflow="fold", no_wrap=True)


def _loading(model: Path) -> str:
    return f'   load it with SentenceTransformer("{model}")'
