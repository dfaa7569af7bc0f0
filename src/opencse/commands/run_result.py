"""The result of `opencse.run`."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rich.console import RenderableType
from rich.jupyter import JupyterMixin

from opencse.commands.display import outcome_lines
from opencse.commands.reports.outcome import Outcome
from opencse.evaluation import STS_TASKS, Results, TaskResult
from opencse.evaluation.probes import ProbeScores
from opencse.foundation.files import write_json
from opencse.training.train import TrainingRun


@dataclass(frozen=True, repr=False)
class RunResult(JupyterMixin):
    """Result of `opencse.run`, displayed as tables in a terminal (rich) and in a notebook.

    Attributes:
        run: The training run.
        scores: Probe and task scores of the untouched backbone (pooled as in the recipe) and of the trained model, by
            their names in the report.
        outcome: What training changed.
        report: The HTML report.
        timings: Seconds of each part of the command, the longest first.
    """

    run: TrainingRun
    scores: dict[str, ProbeScores]
    outcome: Outcome
    report: Path
    timings: dict[str, float]

    def __repr__(self) -> str:
        return f"RunResult(model={str(self.run.model)!r}, report={str(self.report)!r})"

    def __rich__(self) -> RenderableType:
        return outcome_lines(self.outcome, self.scores, self.run, self.report)

    @property
    def before(self) -> dict[str, Results]:
        """Scores of the untouched backbone by suite (`sts`, `pairs`)."""
        return _suites(next(iter(self.scores.values())))

    @property
    def after(self) -> dict[str, Results]:
        """Scores of the trained model."""
        return _suites(list(self.scores.values())[-1])

    def save(self, path: Path) -> None:
        """Write the scores before and after training, and the timings, as JSON."""
        write_json(path, {"before": _plain(self.before), "after": _plain(self.after), "timings": self.timings})


def _suites(scores: ProbeScores) -> dict[str, Results]:
    """Return the results of one model, with the STS tasks and the user's pairs as separate suites."""
    suites: dict[str, list[TaskResult]] = {}
    for task in scores.sts:
        suites.setdefault("sts" if task.task in STS_TASKS else "pairs", []).append(task)
    return {name: Results(results=tuple(tasks), texts=0, seconds=scores.seconds) for name, tasks in suites.items()}


def _plain(suites: dict[str, Results]) -> dict[str, Any]:
    return {
        name: {"tasks": [asdict(task) for task in results.results], "average": results.average}
        for name, results in suites.items()
    }
