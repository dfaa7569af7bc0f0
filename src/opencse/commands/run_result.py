"""The result of `opencse.run`, as it is shown and saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.jupyter import JupyterMixin
from rich.text import Text

from opencse.commands.reports.tables import (
    Comparison,
)
from opencse.commands.train import (
    model_lines,
    path_line,
)
from opencse.evaluation import STS_TASKS, TaskResult
from opencse.evaluation.probes import ProbeScores
from opencse.evaluation.suites import OWN
from opencse.evaluation.task import Results
from opencse.foundation.files import write_json
from opencse.foundation.result_table import Table
from opencse.training.train import TrainingRun


@dataclass(frozen=True, kw_only=True, repr=False)
class RunResult(JupyterMixin):
    """Result of `opencse.run`, displayed as tables in a terminal (rich) and in a notebook.

    Attributes:
        run: The training run.
        untouched: Probe and task scores of the untouched backbone, pooled as in the recipe.
        trained: Scores of the trained model.
        scores: These scores, and those of the trained model with reranking if it has a block, by
            their names in the report.
        comparison: What training changed.
        report: The HTML report.
        timings: Seconds of each part of the command, the longest first.
    """

    run: TrainingRun
    untouched: ProbeScores
    trained: ProbeScores
    scores: dict[str, ProbeScores]
    comparison: Comparison
    report: Path
    timings: dict[str, float]

    def __repr__(self) -> str:
        return f"RunResult(model={str(self.run.model)!r}, report={str(self.report)!r})"

    def __rich__(self) -> RenderableType:
        steps = Table(
            ("", ""),
            [
                (
                    "  opencse check MODEL --texts DOCS",
                    "does your model follow wording or meaning on your texts?",
                ),
                (
                    f"  opencse run {self.run.recipe.name} DOCS --backbone MODEL -o OUT",
                    "train it on them",
                ),
                (
                    "  opencse compare MODEL OUT --texts DOCS -o LISTS",
                    "which of your searches change?",
                ),
            ],
        )
        return Group(
            self.comparison.table(),
            Text(""),
            *model_lines(self.run),
            path_line(f"report: {self.report}"),
            Text("next, with your own model and texts:"),
            steps,
        )

    @property
    def warnings(self) -> tuple[str, ...]:
        """Warnings that the command printed, such as too little text."""
        return self.run.warnings

    @property
    def before(self) -> dict[str, Results]:
        """Scores of the untouched backbone by suite (`sts`, `pairs`, and `tasks` for your own)."""
        return _suites(self.untouched)

    @property
    def after(self) -> dict[str, Results]:
        """Scores of the trained model."""
        return _suites(self.trained)

    def save(self, path: Path) -> None:
        """Write the scores before and after training, and the timings, as JSON."""
        scores = {"before": _plain(self.before), "after": _plain(self.after)}
        write_json(path, {**scores, "timings": self.timings})


def _plain(suites: Mapping[str, Results]) -> dict[str, Any]:
    """Return the results by suite as plain values, for JSON."""
    plain = {}
    for name, part in suites.items():
        tasks = [asdict(task) for task in part.results]
        plain[name] = {"tasks": tasks, "metric": part.metric, "average": part.average}
    return plain


def _suites(scores: ProbeScores) -> dict[str, Results]:
    """Return the results of one model, with the STS tasks and the user's pairs as separate suites."""
    suites: dict[str, list[TaskResult]] = {}
    for task in scores.sts:
        suites.setdefault("sts" if task.task in STS_TASKS else "pairs", []).append(task)
    if scores.tasks:
        suites[OWN] = list(scores.tasks)
    return {name: Results(results=tuple(tasks)) for name, tasks in suites.items()}
