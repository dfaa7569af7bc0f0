"""The results of an evaluation, and the same as JSON and as tables."""

from __future__ import annotations

import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

from rich.console import Group, RenderableType
from rich.jupyter import JupyterMixin
from rich.text import Text

from opencse.evaluation.task import Results
from opencse.foundation.result_table import Number, Table

_SHOWN = {
    **dict.fromkeys(("sts", "pairs"), ("spearman",)),
    "transfer": ("accuracy",),
    "classification": ("accuracy",),
}
_CAPTIONS = {
    "transfer": "accuracy in %, by SentEval's classifier",
    "classification": "accuracy in %, by a classifier trained on all training texts",
    "development": "triplets whose paraphrase is nearer than the contradiction, in %; ties count as wrong",
    **dict.fromkeys(("retrieval", "reranking", "guard"), "in %"),
}
_LIBRARIES = ("opencse", "torch", "transformers", "sentence-transformers", "numpy", "scikit-learn")


@dataclass(frozen=True, kw_only=True)
class Evaluation(JupyterMixin):
    """Scores of one model, displayed as tables in a terminal (rich) and in a notebook.

    Attributes:
        results: Results by suite.
        settings: Settings that they depend on (JSON types, the head of the JSON result).
        texts: Number of distinct texts, each encoded once.
        asked: Number of texts that the tasks need, repetitions included.
        seconds: Wall time of encoding and scoring.
    """

    results: dict[str, Results]
    settings: dict[str, Any]
    texts: int
    asked: int
    seconds: float

    def __rich__(self) -> RenderableType:
        settings = self.settings
        return Group(
            Text(f"{settings['model']}: {settings['pooling']} pooling, {settings['precision']}"),
            *(as_table(suite, results) for suite, results in self.results.items()),
            Text(f"{self.texts:,} distinct texts of {self.asked:,}, each encoded once"),
        )


def as_json(evaluation: Evaluation, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return the results with all settings that they depend on, as JSON types.

    Args:
        evaluation: The results.
        settings: Further settings, put first.
    """
    suites = evaluation.results
    averages = {suite: {"of": _averaged(results), "score": results.average} for suite, results in suites.items()}
    tasks = {
        result.task: {"suite": suite, **{key: value for key, value in asdict(result).items() if key != "task"}}
        for suite, results in suites.items()
        for result in results.results
    }
    return {
        **settings,
        **evaluation.settings,
        "scale": 100,
        "tasks": tasks,
        "averages": averages,
        **({"average": next(iter(averages.values()))} if len(averages) == 1 else {}),
        "distinct_texts": evaluation.texts,
        "asked_texts": evaluation.asked,
        "seconds": round(evaluation.seconds, 3),
        "versions": {"python": platform.python_version(), **{name: version(name) for name in _LIBRARIES}},
    }


def as_table(suite: str, results: Results) -> Table:
    """Return a table with a column for each task and the average, and a row for each metric shown."""
    found, text = results.results, results.results[0].details.get("text")
    main = [each.main for each in found if each.main]
    shown = _SHOWN.get(suite) or tuple(dict.fromkeys(metric for each in found for metric in each.metrics))
    averaged = len(main) > 1
    rows = []
    for metric in shown:
        cells = [
            Number(each.metrics[metric], 2 if each.main else 4) if metric in each.metrics else "" for each in found
        ]
        average = Number(results.average) if {*main} == {metric} else ""
        rows.append((metric, *cells, *([average] if averaged else [])))
    caption = _CAPTIONS.get(suite, "")
    if suite in ("sts", "pairs"):
        caption = f"Spearman x 100, all pairs of a task together; {text} text"
    reasons = [
        f"{each.task}: {metric} is undefined: {reason}" for each in found for metric, reason in each.undefined.items()
    ]
    heads = ("", *(each.task for each in found), *(["average"] if averaged else []))
    return Table(heads, rows, title=suite, notes=[*([caption] if caption else []), *reasons, *_published(results)])


def comparison_table(evaluations: Sequence[Evaluation]) -> Table:
    """Return a table of main scores, with a column for each model and a row for each task and average of a suite."""
    rows: list[tuple[str | Number, ...]] = []
    notes = [note for results in evaluations[0].results.values() for note in _published(results)]
    for suite, results in evaluations[0].results.items():
        found, averaged = [each.results[suite] for each in evaluations], _averaged(results)
        rows += [(f"{task}, {results[task].main}", *(Number(each[task].score) for each in found)) for task in averaged]
        if len(averaged) > 1:
            rows.append((f"{suite}, average", *(Number(each.average) for each in found)))
    return Table(("", *(str(each.settings["model"]) for each in evaluations)), rows, notes=notes)


def _published(results: Results) -> list[str]:
    found = {each.task: each.details.get("published") for each in results.results}
    return [f"{task}, published: {scores}" for task, scores in found.items() if scores]


def _averaged(results: Results) -> list[str]:
    return [result.task for result in results.results if result.main is not None]
