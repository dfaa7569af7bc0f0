"""Measure a sentence encoder, seen only as "texts in, matrix out"; one encode pass serves all tasks."""

from opencse.evaluation.pairs import ScoredPairs, read_pairs
from opencse.evaluation.sources import load_sts
from opencse.evaluation.sts import STS_TASKS, PairsTask
from opencse.evaluation.task import Embeddings, Encode, Results, Task, TaskResult, distinct_texts, evaluate, score

__all__ = [
    "STS_TASKS",
    "Embeddings",
    "Encode",
    "PairsTask",
    "Results",
    "ScoredPairs",
    "Task",
    "TaskResult",
    "distinct_texts",
    "evaluate",
    "load_sts",
    "read_pairs",
    "score",
]
