"""Tasks by name: suites, single tasks, and the user's folders."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from opencse.evaluation.classification import CLASSIFICATION_TASKS, ClassificationTask
from opencse.evaluation.cross_validation import Classifier, CrossValidation
from opencse.evaluation.geometry import GeometryTask
from opencse.evaluation.guard import GUARD_TASKS, load_guard
from opencse.evaluation.labelled_sources import load_labelled
from opencse.evaluation.ranking_sources import RERANKING_TASKS, RETRIEVAL_TASKS, load_reranking, load_retrieval
from opencse.evaluation.sts import STS_TASKS, PairsTask
from opencse.evaluation.sts_sources import TextVariant, load_sts
from opencse.evaluation.task import Task
from opencse.evaluation.transfer import TRANSFER_TASKS, TransferTask
from opencse.evaluation.triplets import DEVELOPMENT_TASKS, load_development
from opencse.foundation.errors import OpencseError

SUITES: Mapping[str, tuple[str, ...]] = {
    "sts": STS_TASKS,
    "transfer": TRANSFER_TASKS,
    "classification": CLASSIFICATION_TASKS,
    "reranking": RERANKING_TASKS,
    "retrieval": RETRIEVAL_TASKS,
    "geometry": ("STS-B dev", "STS-B test"),
    "development": DEVELOPMENT_TASKS,
    "guard": GUARD_TASKS,
}
"""Suites and their tasks."""


def load_suites(
    names: Iterable[str],
    source: str | Path | None,
    *,
    text: TextVariant = "senteval",
    classifier: Classifier = "senteval",
) -> dict[str, list[Task]]:
    """Load tasks, grouped by suite.

    Args:
        names: Suites, tasks of `SUITES`, or folders below `source`: a folder with `corpus.jsonl` is a retrieval task,
            one with `test.jsonl` and without a training part a reranking task, and one with a training and a test part
            of labelled texts a classification task.
        source: The data; see `load_sts`, `load_labelled`, `load_retrieval`, `load_reranking`. None is enough for
            `development` and `guard`.
        text: Text variant, if there are two.
        classifier: Classifier of the transfer tasks; see `opencse.evaluation.cross_validation`.

    Raises:
        OpencseError: A name is unknown, or the data is missing or invalid.
    """
    chosen: dict[str, list[str]] = {}
    for name in dict.fromkeys(names):
        suite, tasks = (name, SUITES[name]) if name in SUITES else (_suite_of(name, source), (name,))
        known = chosen.setdefault(suite, [])
        known += [task for task in tasks if task not in known]
    return {suite: _load(suite, tasks, source, text, classifier) for suite, tasks in chosen.items()}


def _load(
    suite: str, names: Sequence[str], source: str | Path | None, text: TextVariant, classifier: Classifier
) -> list[Task]:
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
        return [TransferTask(data=each, protocol=CrossValidation(classifier=classifier)) for each in sets]
    return [ClassificationTask(data=each) for each in sets]


def _suite_of(name: str, source: str | Path | None) -> str:
    """Return the suite of a task; of a user's folder, by its files."""
    for suite, tasks in SUITES.items():
        if name in tasks:
            return suite
    for folder in () if source is None else (Path(source) / name, Path(source) / "eval" / name):
        if folder.is_dir():
            files = {path.name.removesuffix(".gz") for path in folder.iterdir()}
            if "corpus.jsonl" in files:
                return "retrieval"
            if "test.jsonl" in files and not any(file.startswith("train.") for file in files):
                return "reranking"
            return "classification"
    known = ", ".join([*SUITES, *(task for tasks in SUITES.values() for task in tasks)])
    raise OpencseError(
        f"there is no task {name!r}, and no such folder in {source or 'the data (there is no --data)'}",
        f"Known: {known}.",
    )
