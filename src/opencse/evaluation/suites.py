"""Tasks by name (suites, single tasks, the user's folders), a model's scores on them, and these as JSON and tables."""

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

_MAIN_ALONE = ("sts", "pairs", "transfer", "classification")
"""Suites of which a table shows the main metrics only."""

_CAPTIONS = {
    **dict.fromkeys(("sts", "pairs"), "Spearman × 100, all pairs of a task together"),
    "transfer": "accuracy in %, by SentEval's classifier",
    "classification": "accuracy in %, by a classifier trained on all training texts",
    "development": "triplets whose paraphrase is nearer than the contradiction, in %; ties count as wrong",
    **dict.fromkeys(("retrieval", "reranking", "guard"), "in %"),
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
        suite, tasks = (
            (name, SUITES[name]) if name in SUITES else (_suite_of(name, source), (name,))
        )
        listed = chosen.setdefault(suite, [])
        listed += [task for task in tasks if task not in listed]
    return {suite: _load(suite, tasks, source, text) for suite, tasks in chosen.items()}


def _load(
    suite: str, names: Sequence[str], source: str | Path | None, text: TextVariant
) -> list[Task]:
    if suite == "development":
        return [task for task in load_development() if task.name in names]
    if suite == "guard":
        return [task for task in load_guard() if task.name in names]
    if source is None:
        raise OpencseError(
            "no data was given for the tasks",
            "Give --data (or set OPENCSE_DATA): a folder with STS12/test.tsv.gz …, the data/downstream folder that "
            "SentEval's get_transfer_data.bash makes; or fetch mteb's: `--tasks mteb:STSBenchmark --data hub`.",
        )
    if suite == "sts":
        return [*load_sts(source, text=text, tasks=names)]
    if suite == "geometry":
        splits = {
            name: load_sts(source, text=text, tasks=["STS-B"], split=name.split()[-1])
            for name in names
        }
        return [GeometryTask(pairs=replace(pairs, name=name)) for name, (pairs,) in splits.items()]
    if suite == "retrieval":
        return [load_retrieval(source, name, text=text) for name in names]
    if suite == "reranking":
        return [load_reranking(source, name) for name in names]
    return [load_labelled(source, name, text=text) for name in names]


def _suite_of(name: str, source: str | Path | None) -> str:
    """Return the suite of a task; of a user's folder, by its files."""
    for suite, tasks in SUITES.items():
        if name in tasks:
            return suite
    if source is not None and (folder := find_folder(source, name)) is not None:
        files = {path.name.removesuffix(".gz") for path in folder.iterdir()}
        if "corpus.jsonl" in files:
            return "retrieval"
        without_training = not any(file.startswith("train.") for file in files)
        return "reranking" if "test.jsonl" in files and without_training else "classification"
    choices = ", ".join([*SUITES, *(task for tasks in SUITES.values() for task in tasks)])
    raise OpencseError(
        f"there is no task {name!r}, and no such folder in {source or 'the data (there is no --data)'}",
        f"Known: {choices}.",
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
    suites = evaluation.results
    averages = {
        suite: {"of": _averaged(results), "score": results.average}
        for suite, results in suites.items()
    }
    tasks = {
        result.task: {
            "suite": suite,
            **{key: value for key, value in asdict(result).items() if key != "task"},
        }
        for suite, results in suites.items()
        for result in results.results
    }
    return {
        "suite": ",".join(suites),
        **evaluation.settings,
        "scale": 100,
        "tasks": tasks,
        "averages": averages,
        **({"average": next(iter(averages.values()))} if len(averages) == 1 else {}),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in _LIBRARIES},
        },
    }


def scores_table(evaluations: Sequence[Evaluation]) -> Table:
    """Return a table with a column for each model, and a row for each metric shown and each average of a suite."""
    rows, notes = list[list[Cell]](), list[str]()
    for suite, results in evaluations[0].results.items():
        by_model = [evaluation.results[suite] for evaluation in evaluations]
        for task in results.results:
            for metric in (task.main,) if task.main and suite in _MAIN_ALONE else task.metrics:
                same, digits = [scored[task.task] for scored in by_model], 2 if task.main else 4
                values = (
                    Number(cell.metrics[metric], digits, aside=cell.undefined.get(metric, ""))
                    for cell in same
                )
                rows.append([f"{task.task}, {metric}", *values])
            if published := task.details.get("published"):
                notes.append(f"{task.task}, published: {published}")
        if len(_averaged(results)) > 1:
            rows.append([f"{suite}, average", *(Number(scored.average) for scored in by_model)])
        if caption := _CAPTIONS.get(suite):
            notes.append(f"{suite}: {caption}; {results.results[0].details.get('text')} text")
    return Table(
        ("", *(str(evaluation.settings["model"]) for evaluation in evaluations)), rows, notes=notes
    )


def _averaged(results: Results) -> list[str]:
    return [result.task for result in results.results if result.main is not None]
