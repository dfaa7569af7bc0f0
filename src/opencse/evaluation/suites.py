"""Tasks by name (suites, single tasks, the user's folders), and the evaluation of a loaded model on them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from opencse.encoder.backbone import pooling_name, weights_hash
from opencse.encoder.embedder import Embedder, Precision
from opencse.evaluation.data_files import TextVariant, find_folder
from opencse.evaluation.geometry import GeometryTask
from opencse.evaluation.guard import GUARD_TASKS, load_guard
from opencse.evaluation.labelled import CLASSIFICATION_TASKS, TRANSFER_TASKS, ClassificationTask, TransferTask
from opencse.evaluation.labelled_sources import load_labelled
from opencse.evaluation.ranking_sources import RETRIEVAL_TASKS, load_reranking, load_retrieval
from opencse.evaluation.results import Evaluation
from opencse.evaluation.sts import STS_TASKS, PairsTask
from opencse.evaluation.sts_sources import load_sts
from opencse.evaluation.task import Task, distinct_texts, evaluate_suites
from opencse.evaluation.triplets import DEVELOPMENT_TASKS, load_development
from opencse.foundation.errors import OpencseError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

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


def load_suites(
    names: Iterable[str], source: str | Path | None, *, text: TextVariant = "senteval"
) -> dict[str, list[Task]]:
    """Load tasks, grouped by suite.

    Args:
        names: Suites, tasks of `SUITES`, or folders below `source`: a folder with `corpus.jsonl` is a retrieval task,
            one with `test.jsonl` and without a training part a reranking task, and one with a training and a test part
            of labelled texts a classification task.
        source: The data; see `load_sts`, `load_labelled`, `load_retrieval`, `load_reranking`. None is enough for
            `development` and `guard`.
        text: Text variant, if there are two.

    Raises:
        OpencseError: A name is unknown, or the data is missing or invalid.
    """
    chosen: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        suite, tasks = (name, SUITES[name]) if name in SUITES else (_suite_of(name, source), (name,))
        known = chosen.setdefault(suite, [])
        known += [task for task in tasks if task not in known]
    return {suite: _load(suite, tasks, source, text) for suite, tasks in chosen.items()}


def _load(suite: str, names: Sequence[str], source: str | Path | None, text: TextVariant) -> list[Task]:
    if suite == "development":
        return [task for task in load_development() if task.name in names]
    if suite == "guard":
        return [task for task in load_guard() if task.name in names]
    if source is None:
        raise OpencseError(
            "no data was given for the tasks",
            "Give --data (or set OPENCSE_DATA): a folder with STS12/test.tsv.gz …, the data/downstream folder that "
            "SentEval's get_transfer_data.bash makes, or `--data hub` to download them.",
        )
    if suite == "sts":
        return [PairsTask(pairs=pairs) for pairs in load_sts(source, text=text, tasks=names)]
    if suite == "geometry":
        splits = {name: load_sts(source, text=text, tasks=["STS-B"], split=name.split()[-1]) for name in names}
        return [GeometryTask(pairs=replace(pairs, name=name)) for name, (pairs,) in splits.items()]
    if suite == "retrieval":
        return [load_retrieval(source, name, text=text) for name in names]
    if suite == "reranking":
        return [load_reranking(source, name) for name in names]
    sets = [load_labelled(source, name, text=text) for name in names]
    if suite == "transfer":
        return [TransferTask(data=each) for each in sets]
    return [ClassificationTask(data=each) for each in sets]


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
    known = ", ".join([*SUITES, *(task for tasks in SUITES.values() for task in tasks)])
    raise OpencseError(
        f"there is no task {name!r}, and no such folder in {source or 'the data (there is no --data)'}",
        f"Known: {known}.",
    )


def evaluate_model(
    model: SentenceTransformer,
    suites: Mapping[str, Sequence[Task]],
    *,
    name: str = "",
    precision: Precision = "auto",
) -> Evaluation:
    """Score a `SentenceTransformer` on any tasks.

    Args:
        model: Any `SentenceTransformer`.
        suites: The tasks, such as those of `load_suites`.
        name: Name of the model in the results.
        precision: See `Embedder`.
    """
    embedder = Embedder(model, precision=precision, progress="encode")
    tasks, started = [task for members in suites.values() for task in members], time.perf_counter()
    results = evaluate_suites(embedder, suites)
    texts = {str(each.details["text"]) for suite in results.values() for each in suite.results}
    return Evaluation(
        results=results,
        texts=len(distinct_texts(tasks)),
        asked=sum(1 for task in tasks for _ in task.texts()),
        seconds=time.perf_counter() - started,
        settings={
            "model": name,
            "weights_sha256": weights_hash(model),
            "text": texts.pop() if len(texts) == 1 else "mixed",
            "aggregation": "all",
            "similarity": "cosine",
            "correlation": "spearman",
            "pooling": pooling_name(model),
            "prompt": embedder.prompt,
            "max_seq_length": model.max_seq_length,
            "precision": embedder.precision,
            "device": str(model.device),
            "dimension": embedder.dimension,
        },
    )
