"""The results of an evaluation, and the same as JSON and as tables."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

from rich.console import Group, RenderableType
from rich.jupyter import JupyterMixin
from rich.table import Table
from rich.text import Text

from opencse.evaluation.task import Results

_SHOWN = {
    "sts": ("spearman",),
    "pairs": ("spearman",),
    "transfer": ("accuracy",),
    "classification": ("accuracy", "few_shot_accuracy"),
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
    """

    results: dict[str, Results]
    settings: dict[str, Any]
    texts: int
    asked: int

    def __rich__(self) -> RenderableType:
        return as_tables(self)


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
        "seconds": round(sum(results.seconds for results in suites.values()), 3),
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in _LIBRARIES}},
    }


def as_tables(evaluation: Evaluation) -> RenderableType:
    """Return the tables of all suites, the undefined scores with their reasons, and the number of encoded texts."""
    settings = evaluation.settings
    parts: list[RenderableType] = [Text(f"{settings['model']}: {settings['pooling']} pooling, {settings['precision']}")]
    for suite, results in evaluation.results.items():
        parts.append(as_table(suite, results, title=suite, caption=_caption(suite, results)))
        parts += [
            Text(f"{result.task}: {metric} is undefined: {reason}")
            for result in results.results
            for metric, reason in result.undefined.items()
        ]
    parts.append(Text(f"{evaluation.texts} distinct texts of {evaluation.asked}, each encoded once"))
    return Group(*parts)


def as_table(suite: str, results: Results, *, title: str = "", caption: str = "") -> Table:
    """Return a table with a column for each task and the average, and a row for each metric shown."""
    shown = _SHOWN.get(suite) or tuple(dict.fromkeys(metric for each in results.results for metric in each.metrics))
    table = Table(title=title or None, caption=caption or None, title_justify="left", caption_justify="left")
    table.add_column("")
    for result in results.results:
        table.add_column(result.task, justify="right")
    averaged = len(_averaged(results)) > 1
    if averaged:
        table.add_column("average", justify="right", style="bold")
    for metric in shown:
        cells = [
            _cell(result.metrics[metric], result.main is not None) if metric in result.metrics else ""
            for result in results.results
        ]
        main = all(result.main in (metric, None) for result in results.results)
        table.add_row(metric, *cells, *([_cell(results.average, True) if main else ""] if averaged else []))
    return table


def _averaged(results: Results) -> list[str]:
    return [result.task for result in results.results if result.main is not None]


def _cell(score: float | None, percent: bool) -> str:
    return "undefined" if score is None else f"{score:.2f}" if percent else f"{score:.4f}"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except ModuleNotFoundError:
        return None


def _caption(suite: str, results: Results) -> str:
    """Return the unit of a suite's scores, and the settings that they depend on."""
    first = results.results[0].details
    if suite in ("sts", "pairs"):
        return f"Spearman x 100, all pairs of a task together; {first['text']} text"
    if suite == "transfer":
        return f"accuracy in %, classifier: {first['classifier']}"
    if suite == "classification":
        return "accuracy in %: on all training texts, and on a few per class as in mteb"
    if suite == "development":
        return "triplets whose paraphrase is nearer than the contradiction, in %; ties count as wrong"
    return {"retrieval": "in %", "reranking": "in %", "guard": "in %"}.get(suite, "")
