"""Evaluation of any function "texts in, matrix out"; every text is encoded once for all tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencse.foundation.lazy import lazy_names

if TYPE_CHECKING:
    from opencse.evaluation.sts import STS_TASKS, ScoredPairs, load_sts, read_pairs
    from opencse.evaluation.task import (
        Encode,
        Task,
        TaskResult,
        TextEmbeddings,
        distinct_texts,
        evaluate_tasks,
        score_tasks,
    )

__all__ = [
    "STS_TASKS",
    "Encode",
    "ScoredPairs",
    "Task",
    "TaskResult",
    "TextEmbeddings",
    "distinct_texts",
    "evaluate_tasks",
    "load_sts",
    "read_pairs",
    "score_tasks",
]

__getattr__ = lazy_names(__name__)
