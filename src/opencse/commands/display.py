"""What a run prints."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.text import Text

from opencse.commands.reports.outcome import Outcome
from opencse.foundation.result_table import Table

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


def outcome_lines(outcome: Outcome, run: TrainingRun, report: Path) -> RenderableType:
    """Return whether the model is better, the paths, and the commands that come next."""
    steps = Table(
        ("", ""),
        [
            ("  opencse check MODEL --texts DOCS", "does your model follow wording or meaning on your texts?"),
            (f"  opencse run {run.recipe.name} DOCS --backbone MODEL -o OUT", "train it on them"),
            ("  opencse compare MODEL OUT --texts DOCS -o LISTS", "which of your searches change?"),
        ],
    )
    return Group(
        outcome.table(),
        *_warnings(run),
        Text(""),
        _model(run),
        path_line(f"report: {report}"),
        Text("next, with your own model and texts:"),
        steps,
    )


def _warnings(run: TrainingRun) -> list[Text]:
    return [Text(f"warning: {each}") for each in run.warnings if each not in run.early_warnings]


def _model(run: TrainingRun) -> Text:
    trust = "" if run.recipe.block is None else ", trust_remote_code=True"
    return path_line(f'model: {run.model}   load it with SentenceTransformer("{run.model}"{trust})')


def path_line(text: str) -> Text:
    """Return a text with a path in it, which is never cut."""
    return Text(text, overflow="fold", no_wrap=True)
