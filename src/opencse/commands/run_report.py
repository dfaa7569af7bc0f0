"""The end of a run: both models are probed; report, model card and results are written, and the outcome is shown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from huggingface_hub import ModelCard
from rich.console import Group, RenderableType
from rich.jupyter import JupyterMixin
from rich.text import Text

from opencse.commands.compare_search import EMBED_AGAIN
from opencse.commands.reports.page import write_report
from opencse.commands.reports.tables import Outcome, cache_line, compare_outcome, headline_rows, shown
from opencse.commands.train import model_lines, path_line, training_line
from opencse.encoder import load_encoder
from opencse.encoder.backbone import Backbone
from opencse.encoder.embedder import Embedder, Precision
from opencse.evaluation import STS_TASKS, Results, TaskResult
from opencse.evaluation.probes import ProbeData, ProbeScores, ProbeSuite
from opencse.foundation.files import write_json, write_text
from opencse.foundation.progress import timed
from opencse.foundation.result_table import Cell, Number, Table
from opencse.text.views.constructor import texts_hash
from opencse.training.batches import cached_vectors
from opencse.training.session import hub_score
from opencse.training.train import TrainingRun

_SECTION = "## Before and after"
_UNGUARDED = (
    "No guard: the recipe has none, and there were no development pairs (--dev or --data), so nothing checked that the "
    "model is still as good as before."
)
_NO_PAIRS = "Agreement with people was not measured: give the STS files with --data, or your own pairs with --pairs."
UPGRADE = (
    "Stored vectors of the model before stay in use: opencse.encoder.meaning_block.upgrade appends numbers to them, "
    "and the ranking stays as it was until you send whole queries (docs/guides/upgrade-index.md)."
)


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
        return outcome_lines(self.outcome, self.run, self.report)

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
        plain = [
            {name: {"tasks": list(map(asdict, each.results)), "average": each.average} for name, each in suites.items()}
            for suites in (self.before, self.after)
        ]
        write_json(path, {"before": plain[0], "after": plain[1], "timings": self.timings})


def _suites(scores: ProbeScores) -> dict[str, Results]:
    """Return the results of one model, with the STS tasks and the user's pairs as separate suites."""
    suites: dict[str, list[TaskResult]] = {}
    for task in scores.sts:
        suites.setdefault("sts" if task.task in STS_TASKS else "pairs", []).append(task)
    return {name: Results(results=tuple(tasks)) for name, tasks in suites.items()}


def measure_and_report(
    trained: TrainingRun, backbone: Backbone, probe_data: ProbeData, few: Sequence[str], made_of: str
) -> tuple[dict[str, ProbeScores], Outcome, Path]:
    """Probe both models, and write the report and the scores on the model card.

    Vectors of the untouched backbone are cached between runs.
    """
    precision: Precision = "auto" if trained.recipe.training.precision == "fp16" else trained.recipe.training.precision
    name = Path(backbone.name).name
    names = name, f"{name} + {trained.recipe.name}"

    def untouched(texts: Sequence[str]) -> np.ndarray:
        encoder = backbone.encoder(**trained.recipe.pooling)
        embedder = Embedder(encoder, precision=precision, progress=f"evaluating {names[0]}")
        return cached_vectors(embedder, texts, texts_hash(texts))

    with timed("evaluation"):
        suite = ProbeSuite(probe_data)
        before = suite(untouched)
        after = suite(Embedder(load_encoder(trained.model), precision=precision, progress=f"evaluating {names[1]}"))
        scores = dict(zip(names, (before, after), strict=True))
    curve = trained.outcome.curve
    with timed("report"):
        remarks = [*few]
        if curve is None and trained.outcome.first_score is None:
            remarks.append(_UNGUARDED)
        if not after.sts:
            remarks.append(_NO_PAIRS)
        remarks += [*cache_line(scores), UPGRADE if curve else EMBED_AGAIN]
        outcome = compare_outcome(scores, curve, remarks)
        notes = [f"Training: {training_line(trained)}.", *trained.warnings]
        published = trained.recipe.published.get(trained.recipe.family)
        if published is not None:
            notes.append(
                f"Published STS average for {trained.recipe.family}: {published:.2f} (one run of the authors')."
            )
        notes += probe_data.notes
        report = write_report(scores, trained.folder, notes=notes, outcome=outcome, curve=curve)
    add_scores(trained.model / "README.md", scores, made_of=made_of)
    return scores, outcome, report


def add_scores(readme: Path, models: Mapping[str, ProbeScores], made_of: str) -> None:
    """Add a section with the scores of each model to the end of a model card, or replace it.

    Args:
        readme: The card.
        models: Scores of the untouched and of the trained model, by name.
        made_of: Description of the training text.
    """
    kept = readme.read_text(encoding="utf-8").split(f"\n{_SECTION}")[0].rstrip()
    text = f"{kept}\n\n{_SECTION}\n\nText: {made_of}.\n\n{card_table(models)}\n"
    write_text(readme, _with_results(text, list(models.values())[-1]))


def _with_results(text: str, found: ProbeScores) -> str:
    """Add the scores of the trained model to the metadata of the card, where a model hub reads them."""
    scores = [task for task in found.sts if task.score is not None]
    if not scores or not text.startswith("---\n"):
        return text
    card = ModelCard(text, ignore_metadata_errors=True)
    data: Any = card.data
    data.model_name = data.model_name or "opencse"
    others = [result for result in data.eval_results or [] if result.metric_type != "spearman_cosine"]
    data.eval_results = others + [
        hub_score("semantic-similarity", task.task, "spearman_cosine", float(task.score or 0)) for task in scores
    ]
    return f"---\n{data.to_yaml()}\n---\n\n{card.text.lstrip()}"


def card_table(models: Mapping[str, ProbeScores]) -> str:
    """Return a Markdown table of the Spearman correlations (x 100) and the headline figures of the probe."""
    first, *_ = models.values()
    rows: list[list[Cell]] = []
    for i, task in enumerate(first.sts):
        scores = [found.sts[i].score for found in models.values()]
        rows.append([task.task, *("–" if score is None else Number(score) for score in scores)])
    rows += headline_rows(models)
    return Table(["", *(shown(name, 40) for name in models)], rows).markdown().rstrip()


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
        Text(""),
        *model_lines(run),
        path_line(f"report: {report}"),
        Text("next, with your own model and texts:"),
        steps,
    )
