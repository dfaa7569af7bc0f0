"""Evaluation of any function "texts in, matrix out"; every text is encoded once for all tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencse.foundation.lazy import public_names

if TYPE_CHECKING:
    from opencse.evaluation.labelled import ClassificationTask, LabelledSet, TransferTask, load_labelled
    from opencse.evaluation.measures import GeometryTask
    from opencse.evaluation.retrieval import RetrievalTask
    from opencse.evaluation.sts import STS_TASKS, ScoredPairs, load_sts, read_pairs
    from opencse.evaluation.suites import load_suites
    from opencse.evaluation.task import (
        Encode,
        Results,
        Task,
        TaskResult,
        TextEmbeddings,
        distinct_texts,
        evaluate_suites,
        evaluate_tasks,
        score,
    )
    from opencse.evaluation.written_sets import (
        DEVELOPMENT_SETS,
        Triplet,
        TripletSet,
        development_set,
        load_development,
        load_guard,
        read_triplets,
    )

__all__ = [
    "DEVELOPMENT_SETS",
    "STS_TASKS",
    "ClassificationTask",
    "Encode",
    "GeometryTask",
    "LabelledSet",
    "Results",
    "RetrievalTask",
    "ScoredPairs",
    "Task",
    "TaskResult",
    "TextEmbeddings",
    "TransferTask",
    "Triplet",
    "TripletSet",
    "development_set",
    "distinct_texts",
    "evaluate_suites",
    "evaluate_tasks",
    "load_development",
    "load_guard",
    "load_labelled",
    "load_sts",
    "load_suites",
    "read_pairs",
    "read_triplets",
    "score",
]

__getattr__ = public_names(__name__)
