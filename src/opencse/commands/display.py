"""Results as rich renderables, the same in a terminal and in a notebook."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from opencse.commands.reports.outcome import Outcome
from opencse.commands.reports.summary import cards, verdict
from opencse.commands.reports.tables import triplet_rows
from opencse.evaluation import Results, TaskResult
from opencse.evaluation.probes import ProbeScores

if TYPE_CHECKING:
    from opencse.training.train import TrainingRun


def run_lines(run: TrainingRun) -> RenderableType:
    """Return steps, time, the score of the kept weights, warnings that are new, and how to load the model."""
    outcome = run.outcome
    kept = f"{outcome.steps} steps in {outcome.seconds:.0f} s"
    if outcome.best_score is not None:
        share = "" if outcome.share == 1 else f"{outcome.share:.0%} of the way to "
        kept += f"; kept {share}step {outcome.best_step}, development Spearman {outcome.best_score:.2f}"
        kept += f" (before training {outcome.first_score:.2f})" if outcome.first_score is not None else ""
    load = f'model: {run.model}   load it with SentenceTransformer("{run.model}")'
    warnings = [Text(f"warning: {each}") for each in run.warnings if each not in run.early_warnings]
    return Group(Text(kept), *warnings, Text(load, overflow="fold", no_wrap=True))


def scores_tables(before: Mapping[str, Results], after: Mapping[str, Results], run: TrainingRun) -> RenderableType:
    """Return a table of scores before and after for each suite, with the published average if there is one."""
    if not before:
        note = "nothing was scored against human judgements: pass --data for the STS tasks, or --pairs"
        return Text(note)
    parts: list[RenderableType] = []
    published = run.recipe.published.get(run.recipe.family)
    for suite, results in before.items():
        parts.append(_suite_table(results, after[suite]))
        if suite == "sts" and published is not None:
            parts.append(Text(f"published average for {run.recipe.family}: {published:.2f} (one run of the authors')"))
        if suite == "pairs":
            parts += [
                _subsets_table(task, after[suite][task.task]) for task in results.results if "subsets" in task.details
            ]
    return Group(*parts)


def probe_tables(models: Mapping[str, ProbeScores], page: Path | None = None) -> RenderableType:
    """Return the headline figures and conclusions of a probe, and the path of the report.

    Args:
        models: Scores by label.
        page: The report.
    """
    parts: list[RenderableType] = []
    shown = cards(dict(models))
    if shown:
        table = Table(box=None, header_style="bold")
        table.add_column("")
        for name, *_ in max((card.values for card in shown), key=len):
            table.add_column(Text(name), justify="right")
        for card in shown:
            cells = (f"{value}  ({spread})" if spread else value for _, value, spread, _ in card.values)
            table.add_row(card.title, *cells)
        for label, _, *rates in triplet_rows(models, columns=("grade", "opposites", "form")):
            table.add_row(f"Paraphrase nearer: {label}", *rates)
        parts.append(table)
    parts += [Text(paragraph) for paragraph in verdict(dict(models))]
    if page is not None:
        parts.append(Text(f"report: {page}", overflow="fold", no_wrap=True))
    return Group(*parts)


def answer_lines(outcome: Outcome, page: Path) -> RenderableType:
    """Return whether the model is better, on what, and what got worse; then the path of the report."""
    parts: list[RenderableType] = []
    for question, lines in outcome.answers():
        parts += [Text(question, style="bold"), *(Text(f"  {line}") for line in lines)]
    return Group(*parts, Text(f"report: {page}", overflow="fold", no_wrap=True))


def _suite_table(before: Results, after: Results) -> Table:
    table = Table(box=None, header_style="bold")
    table.add_column("Spearman x 100")
    rows: dict[str, list[str]] = {"before": [], "after": []}
    for task in before.results:
        table.add_column(task.task, justify="right")
        rows["before"].append(_number(task.score))
        rows["after"].append(_number(after[task.task].score))
    if len(before.results) > 1:
        table.add_column("average", justify="right")
        rows["before"].append(_number(before.average))
        rows["after"].append(_number(after.average))
    for label, cells in rows.items():
        table.add_row(label, *cells)
    return table


def _subsets_table(before: TaskResult, after: TaskResult) -> Table:
    """Return the mean cosine of each kind of pair."""
    table = Table(box=None, header_style="bold")
    for heading in ("kind of pair", "pairs", "gold score", "mean cosine before", "after"):
        table.add_column(heading, justify="left" if heading == "kind of pair" else "right")
    kinds = before.details["subsets"]
    for kind, values in sorted(kinds.items(), key=lambda item: -item[1]["gold_mean"]):
        later = after.details["subsets"][kind]["cosine_mean"]
        cells = (f"{values['gold_mean']:.1f}", f"{values['cosine_mean']:.2f}", f"{later:.2f}")
        table.add_row(kind, str(values["rows"]), *cells)
    return table


def _number(score: float | None) -> str:
    return "undefined" if score is None else f"{score:.2f}"
