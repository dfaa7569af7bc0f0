"""The results of an evaluation, and the same as JSON and as tables."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

from rich.console import Group, RenderableType
from rich.jupyter import JupyterMixin
from rich.text import Text

from opencse.evaluation.task import Results
from opencse.foundation.result_table import Number, Table

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
        "seconds": round(sum(results.seconds for results in suites.values()), 3),
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in _LIBRARIES}},
    }


def as_table(suite: str, results: Results) -> Table:
    """Return a table with a column for each task and the average, and a row for each metric shown."""
    found = results.results
    shown = _SHOWN.get(suite) or tuple(dict.fromkeys(metric for each in found for metric in each.metrics))
    averaged = ["average"] if len(_averaged(results)) > 1 else []
    rows = []
    for metric in shown:
        cells = [
            Number(each.metrics[metric], 2 if each.main else 4) if metric in each.metrics else "" for each in found
        ]
        main = all(each.main in (metric, None) for each in found)
        rows.append((metric, *cells, *(Number(results.average) if main else "" for _ in averaged)))
    reasons = [
        f"{each.task}: {metric} is undefined: {reason}" for each in found for metric, reason in each.undefined.items()
    ]
    caption = _caption(suite, results)
    notes = [*([caption] if caption else []), *reasons]
    return Table(("", *(each.task for each in found), *averaged), rows, title=suite, notes=notes)


def _averaged(results: Results) -> list[str]:
    return [result.task for result in results.results if result.main is not None]


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
        return "accuracy in %, by SentEval's classifier"
    if suite == "classification":
        return "accuracy in %: on all training texts, and on a few per class as in mteb"
    if suite == "development":
        return "triplets whose paraphrase is nearer than the contradiction, in %; ties count as wrong"
    return {"retrieval": "in %", "reranking": "in %", "guard": "in %"}.get(suite, "")
