"""Scores of an encoder in training: development pairs, which choose the step that is kept, and guards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from opencse.encoder.embedder import Embedder, Precision
from opencse.evaluation.pairs import ScoredPairs, read_pairs
from opencse.evaluation.sts import PairsTask
from opencse.evaluation.sts_sources import load_sts
from opencse.evaluation.task import Task, TextEmbeddings, distinct_texts
from opencse.foundation.errors import OpencseError
from opencse.text import demo

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def development_sets(
    dev: str | Path | None, data: str | Path | None, tasks: Sequence[str] = ("STS-B",)
) -> list[ScoredPairs]:
    """Read the sets of scored pairs that `--dev` names.

    Args:
        dev: A file of scored pairs, `demo`, `stsb` (STS-B dev below `data`), `none`, or None for `tasks` if there is
            `data`.
        data: The STS files.
        tasks: The development sets that the recipe names (`Selection.tasks`).

    Returns:
        The sets, whose mean score counts; empty if there are none.

    Raises:
        OpencseError: A file cannot be read, or `stsb` is asked for without `data`.
    """
    if str(dev) == "none" or (dev is None and data is None):
        return []
    if dev is not None and str(dev) != "stsb":
        return [read_pairs(demo.pairs(dev))]
    if data is None:
        raise OpencseError("--dev stsb needs the STS files", "Pass --data, or a file of scored pairs as --dev.")
    if dev is not None or str(data) == "hub":  # the hub has no other development set
        tasks = ["STS-B"]
    return load_sts(data, text=sts_text(data), tasks=list(tasks), split="dev")


def development_scorer(
    encoder: SentenceTransformer, sets: Sequence[ScoredPairs], precision: Precision = "auto"
) -> Callable[[], float]:
    """Return a function that scores the current weights of the encoder: Spearman x 100, the mean over sets."""
    score_all = task_scorer(encoder, [PairsTask(pairs=pairs) for pairs in sets], precision)

    def score() -> float:
        scores = score_all()
        return sum(scores.values()) / len(scores)

    return score


def task_scorer(
    encoder: SentenceTransformer, tasks: Sequence[Task], precision: Precision = "auto"
) -> Callable[[], dict[str, float]]:
    """Return a function that scores the encoder's current weights on each task, by the task's name.

    The texts are tokenised once.
    """
    embedder = Embedder(encoder, precision=precision)
    texts = distinct_texts(tasks)
    prepared = embedder.prepare(texts)

    def score() -> dict[str, float]:
        embeddings, scores = TextEmbeddings(texts, embedder.encode(prepared)), {}
        for task in tasks:
            result = task.score(embeddings)
            if result.score is None:
                raise OpencseError(f"{task.name}: the development score is undefined ({result.undefined})")
            scores[task.name] = result.score
        return scores

    return score


def sts_text(data: str | Path | None) -> Literal["senteval", "raw"]:
    """Return the text variant to read: `raw` from the hub, which has no other, otherwise that of published scores."""
    return "raw" if str(data) == "hub" else "senteval"
