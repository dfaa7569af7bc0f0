"""Evaluation results as JSON and as a table."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import asdict
from importlib.metadata import version
from typing import Any

from rich.table import Table

from opencse.evaluation.task import Results

_LIBRARIES = ("opencse", "torch", "transformers", "sentence-transformers", "numpy")


def as_json(results: Results, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Everything needed to know later what a number means.

    Args:
        results: The results.
        settings: What was evaluated and how: model, weights hash, text variant, pooling, precision, …
    """
    tasks = {
        result.task: {key: value for key, value in asdict(result).items() if key != "task"}
        for result in results.results
    }
    return {
        **settings,
        "scale": 100,
        "tasks": tasks,
        "average": {"of": list(tasks), "score": results.average},
        "distinct_texts": results.texts,
        "seconds": round(results.seconds, 3),
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in _LIBRARIES}},
    }


def as_table(results: Results, *, title: str, caption: str = "") -> Table:
    """One column per task and the average, as papers print it."""
    table = Table(title=title, caption=caption or None, title_justify="left", caption_justify="left")
    for result in results.results:
        table.add_column(result.task, justify="right")
    table.add_column("average", justify="right", style="bold")
    table.add_row(*(_cell(result.score) for result in results.results), _cell(results.average))
    return table


def _cell(score: float | None) -> str:
    return "undefined" if score is None else f"{score:.2f}"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except ModuleNotFoundError:
        return None
