"""What commands print: notes on stderr, results as tables on stdout."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from opencse.progress import note

if TYPE_CHECKING:
    from opencse.evaluation import Results, TaskResult
    from opencse.pipeline import Result
    from opencse.probing import Findings
    from opencse.training import Run


def show_run(run: Run) -> None:
    """What a training run came to, and what to do with it."""
    outcome = run.outcome
    print_ = Console().print
    kept = f"{outcome.steps} steps in {outcome.seconds:.0f} s"
    if outcome.best_score is not None:
        way = "" if outcome.share == 1 else f"{outcome.share:.0%} of the way to "
        kept += f"; kept {way}step {outcome.best_step}, development Spearman {outcome.best_score:.2f}"
        kept += f" (before training {outcome.first_score:.2f})" if outcome.first_score is not None else ""
    print_(kept, highlight=False)
    for warning in run.warnings:
        note(f"warning: {warning}")
    print_(f'model: {run.model}   load it with SentenceTransformer("{run.model}")', highlight=False, soft_wrap=True)


def show_result(result: Result) -> None:
    """A run, and its scores before and after."""
    show_run(result.run)
    for suite in result.before:
        _show_suite(suite, result.before[suite], result.after[suite], result.run)
    if not result.before:
        note("nothing was scored against people's judgements: pass --data for the STS tasks, or --pairs")
    show_findings(result.findings, result.report)


def _show_suite(suite: str, before: Results, after: Results, run: Run) -> None:
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
    Console().print(table)
    published = run.recipe.published.get(run.recipe.family)
    if suite == "sts" and published is not None:
        Console().print(f"published average for {run.recipe.family}: {published:.2f} (one run of the authors')")
    for task in before.results:
        if "subsets" in task.details and suite == "pairs":
            _show_subsets(task, after[task.task])


def _show_subsets(before: TaskResult, after: TaskResult) -> None:
    """Mean cosine of each kind of pair: wording and meaning side by side."""
    table = Table(box=None, header_style="bold")
    for heading in ("kind of pair", "pairs", "gold score", "mean cosine before", "after"):
        table.add_column(heading, justify="left" if heading == "kind of pair" else "right")
    kinds = before.details["subsets"]
    for kind, values in sorted(kinds.items(), key=lambda item: -item[1]["gold_mean"]):
        later = after.details["subsets"][kind]["cosine_mean"]
        cells = (f"{values['gold_mean']:.1f}", f"{values['cosine_mean']:.2f}", f"{later:.2f}")
        table.add_row(kind, str(values["rows"]), *cells)
    Console().print(table)


def _number(score: float | None) -> str:
    return "undefined" if score is None else f"{score:.2f}"


def show_findings(findings: dict[str, Findings], page: Path) -> None:
    """The headline figures of a report, and where it is."""
    from opencse.reports.summary import cards, verdict

    console = Console()
    shown = cards(findings)
    if shown:
        table = Table(box=None, header_style="bold")
        table.add_column("")
        for name, *_ in max((card.values for card in shown), key=len):
            table.add_column(Text(name), justify="right")
        for card in shown:
            table.add_row(
                card.title, *(f"{value}  ({spread})" if spread else value for _, value, spread, _ in card.values)
            )
        console.print(table)
    for paragraph in verdict(findings):
        console.print(Text(paragraph), soft_wrap=True)
    console.print(f"report: {page}", highlight=False, markup=False, soft_wrap=True)
