"""Tasks by name (suites, single tasks, folders), a model's scores on them, as JSON and tables."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rich.console import Group, RenderableType
from rich.jupyter import JupyterMixin
from rich.text import Text

from opencse.evaluation.evaluators import GeometryTask
from opencse.evaluation.labelled import CLASSIFICATION_TASKS, TRANSFER_TASKS, load_labelled
from opencse.evaluation.retrieval import RETRIEVAL_TASKS, load_reranking, load_retrieval
from opencse.evaluation.sts import STS_TASKS, load_sts
from opencse.evaluation.task import Results, Task, TextVariant, find_folder
from opencse.evaluation.written_sets import (
    DEVELOPMENT_TASKS,
    GUARD_TASKS,
    load_development,
    load_guard,
)
from opencse.foundation.errors import OpencseError
from opencse.foundation.lazy import Kinds
from opencse.foundation.plugins import ways_to_add
from opencse.foundation.result_table import Cell, Number, Table

SUITES: Mapping[str, tuple[str, ...]] = {
    "sts": STS_TASKS,
    "transfer": TRANSFER_TASKS,
    "classification": CLASSIFICATION_TASKS,
    "retrieval": RETRIEVAL_TASKS,
    "geometry": ("STS-B dev", "STS-B test"),
    "development": DEVELOPMENT_TASKS,
    "guard": GUARD_TASKS,
}
"""Suites and their tasks."""

TASKS = Kinds({}, "opencse.tasks")
"""Tasks from outside the package by name: a class, or a function without arguments that returns a task."""

OWN = "tasks"
"""The suite of tasks from outside the package."""

# Suites for which a table shows the main metrics only.
_MAIN_ALONE = ("sts", "pairs", "transfer", "classification")

_CAPTIONS = {
    "sts": "Spearman × 100, all pairs of a task together",
    "pairs": "Spearman × 100, all pairs of a task together",
    "transfer": "accuracy in %, by SentEval's classifier",
    "classification": "accuracy in %, by a classifier trained on all training texts",
    "development": (
        "triplets whose paraphrase is nearer than the contradiction, in %; ties count as wrong"
    ),
    "retrieval": "in %",
    "reranking": "in %",
    "guard": "in %",
}

_LIBRARIES = ("opencse", "torch", "transformers", "sentence-transformers", "numpy", "scikit-learn")


def load_suites(
    names: Iterable[str], source: str | Path | None, *, text: TextVariant = "senteval"
) -> dict[str, list[Task]]:
    """Load tasks, grouped by suite.

    Args:
        names: Suites, tasks of `SUITES`, or folders below `source`: a folder with `corpus.jsonl` is
            a retrieval task, one with `test.jsonl` and without a training part a reranking task,
            and one with a training and a test part of labelled texts a classification task.
        source: The data; see `load_sts`, `load_labelled`, `load_retrieval`, `load_reranking`. None
            is enough for `development` and `guard`.
        text: Text variant, if there are two.

    Raises:
        OpencseError: A name is unknown, or the data is missing or invalid.
    """
    chosen: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        if name in SUITES:
            suite = name
            tasks = SUITES[name]
        else:
            suite = _suite_of(name, source)
            tasks = (name,)
        listed = chosen.setdefault(suite, [])
        for task in tasks:
            if task not in listed:
                listed.append(task)
    return {suite: _load(suite, tasks, source, text) for suite, tasks in chosen.items()}


def _load(
    suite: str, names: Sequence[str], source: str | Path | None, text: TextVariant
) -> list[Task]:
    if suite == OWN:
        return [TASKS[name]() for name in names]
    if suite == "development":
        return [task for task in load_development() if task.name in names]
    if suite == "guard":
        return [task for task in load_guard() if task.name in names]
    if source is None:
        raise OpencseError(
            "no data was given for the tasks",
            "Give --data (or set OPENCSE_DATA): a folder with STS12/test.tsv.gz …, the "
            "data/downstream folder that SentEval's get_transfer_data.bash makes; or fetch mteb's: "
            "`--tasks mteb:STSBenchmark --data hub`.",
        )
    if suite == "sts":
        return list(load_sts(source, text=text, tasks=names))
    if suite == "geometry":
        tasks: list[Task] = []
        for name in names:
            # The name ends in the part, as in `STS-B dev`.
            split = name.split()[-1]
            (pairs,) = load_sts(source, text=text, tasks=["STS-B"], split=split)
            tasks.append(GeometryTask(pairs=replace(pairs, name=name)))
        return tasks
    if suite == "retrieval":
        return [load_retrieval(source, name, text=text) for name in names]
    if suite == "reranking":
        return [load_reranking(source, name) for name in names]
    return [load_labelled(source, name, text=text) for name in names]


def _suite_of(name: str, source: str | Path | None) -> str:
    """Return the suite of a task; that of a user's folder is recognized by its files."""
    for suite, tasks in SUITES.items():
        if name in tasks:
            return suite
    if name in TASKS:
        return OWN
    folder = None if source is None else find_folder(source, name)
    if folder is not None:
        files = {path.name.removesuffix(".gz") for path in folder.iterdir()}
        without_training = not any(file.startswith("train.") for file in files)
        if "corpus.jsonl" in files:
            return "retrieval"
        if "test.jsonl" in files and without_training:
            return "reranking"
        return "classification"
    choices = list(SUITES)
    for tasks in SUITES.values():
        choices += tasks
    raise OpencseError(
        f"there is no task {name!r}, and no such folder in "
        f"{source or 'the data (there is no --data)'}",
        f"Known: {', '.join([*choices, *TASKS])}. {ways_to_add(TASKS.group)}",
    )


@dataclass(frozen=True, kw_only=True)
class Evaluation(JupyterMixin):
    """Scores of one model, displayed as tables in a terminal (rich) and in a notebook.

    Attributes:
        results: Results by suite.
        settings: Settings that they depend on (JSON types, the head of the JSON result).
    """

    results: dict[str, Results]
    settings: dict[str, Any]

    def __rich__(self) -> RenderableType:
        settings = self.settings
        return Group(
            Text(f"{settings['model']}: {settings['pooling']} pooling, {settings['precision']}"),
            scores_table([self]),
        )


def as_json(evaluation: Evaluation) -> dict[str, Any]:
    """Return the results with all settings that they depend on, as JSON types."""
    tasks = {}
    averages = {}
    for suite, results in evaluation.results.items():
        averages[suite] = {
            "of": _averaged_tasks(results),
            "metric": results.metric,
            "score": results.average,
        }
        for result in results.results:
            values = asdict(result)
            name = values.pop("task")
            tasks[name] = {"suite": suite, **values}
    document: dict[str, Any] = {
        "suite": ",".join(evaluation.results),
        **evaluation.settings,
        "scale": 100,
        "tasks": tasks,
        "averages": averages,
    }
    if len(averages) == 1:
        document["average"] = next(iter(averages.values()))
    versions = {"python": platform.python_version()}
    for library in _LIBRARIES:
        versions[library] = version(library)
    document["versions"] = versions
    return document


def scores_table(evaluations: Sequence[Evaluation]) -> Table:
    """Return a table with a column for each model and a row for each metric and suite average."""
    rows: list[list[Cell]] = []
    notes: list[str] = []
    for suite, results in evaluations[0].results.items():
        by_model = [evaluation.results[suite] for evaluation in evaluations]
        for task in results.results:
            metrics = list(task.metrics)
            if task.main and suite in _MAIN_ALONE:
                metrics = [task.main]
            digits = 2 if task.main else 4
            for metric in metrics:
                row: list[Cell] = [f"{task.task}, {metric}"]
                for scored in by_model:
                    result = scored[task.task]
                    reason = result.undefined.get(metric, "")
                    row.append(Number(result.metrics[metric], digits, aside=reason))
                rows.append(row)
            published = task.details.get("published")
            if published:
                notes.append(f"{task.task}, published: {published}")
        if len(_averaged_tasks(results)) > 1 and results.metric is not None:
            averages = [Number(scored.average) for scored in by_model]
            rows.append([f"{suite}, average", *averages])
        caption = _CAPTIONS.get(suite)
        if caption:
            text = results.results[0].details.get("text")
            notes.append(f"{suite}: {caption}; {text} text")
    models = [str(evaluation.settings["model"]) for evaluation in evaluations]
    return Table(("", *models), rows, notes=notes)


def _averaged_tasks(results: Results) -> list[str]:
    """Return the tasks that count for the average of a suite: those with a main score."""
    return [result.task for result in results.results if result.main is not None]
