"""Guards: search and classification that a change of a model must not harm.

The bundled guard set was written for this project (docs/data/development-sets.md). A folder of one's own may hold any
of its four tables.
"""

from __future__ import annotations

import importlib.resources
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

from opencse.errors import OpencseError
from opencse.evaluation.neighbours import NeighbourTask
from opencse.evaluation.retrieval import RetrievalTask
from opencse.evaluation.task import Task
from opencse.io.tables import read_table

GUARD_TASKS = ("guard-questions", "guard-answers", "guard-topics", "guard-long")
"""The tasks of the bundled guard set."""

_SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[A-Z])")
_SHORTEST = 5  # words of a sentence that is a query of its own; "Others don't." could stand anywhere


def load_guard(folder: str | Path | None = None, *, prefix: str = "guard") -> list[Task]:
    """Load guard tasks.

    Args:
        folder: A folder that holds any of these tables; None for the guard set that comes with the package.

            - `questions.tsv` (`group`, `question`): every question searches for the others of its group.
            - `answers.tsv` (`question`, `passage`): every question searches all passages for its own; a row without a
              question is one more passage to search.
            - `topics.tsv` (`topic`, `text`): the ten nearest texts of each text should have its topic.
            - `long.tsv` (`summary`, `text`): the summary and every sentence of a text search for that text.

        prefix: What the names of the tasks begin with, before `-questions` and so on.

    Returns:
        The tasks, in the order of `GUARD_TASKS`; of a folder of one's own those whose table is there.

    Raises:
        OpencseError: There is none of the tables, or one of them lacks a column or a text.
    """
    chosen = _bundled() if folder is None else Path(folder)
    found: list[Task] = []
    for name in GUARD_TASKS:
        table = name.removeprefix("guard-")
        path = chosen / f"{table}.tsv"
        if os.path.isfile(path):  # false for any path, where Path.is_file raises
            found.append(_BUILDERS[name](f"{prefix}-{table}", path))
    if not found:
        tables = ", ".join(f"{name.removeprefix('guard-')}.tsv" for name in GUARD_TASKS)
        raise OpencseError(f"{chosen} holds no guard", f"Put one of these tables there: {tables}.")
    return found


def _bundled() -> Path:
    return Path(str(importlib.resources.files("opencse"))) / "assets" / "guard"


def _rows(path: Path, *columns: str, optional: str = "") -> list[dict[str, str]]:
    """Read the text columns of a table; only the `optional` one may be empty."""
    rows = []
    for line, cells in read_table(path):
        if not cells:
            continue
        row = {name: str(cells.get(name) or "").strip() for name in columns}
        empty = [name for name in columns if not row[name] and name != optional]
        if empty:
            raise OpencseError(f"{path}, line {line}: no {empty[0]}", f"Give the columns {', '.join(columns)}.")
        rows.append(row)
    return rows


def _questions(name: str, path: Path) -> Task:
    rows = _rows(path, "group", "question")
    groups: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        groups.setdefault(row["group"], []).append(place)
    alone = next((group for group, places in groups.items() if len(places) < 2), None)
    if alone is not None:
        raise OpencseError(f"{path}: the group {alone!r} has one question", "Give each group two or more.")
    texts = [row["question"] for row in rows]
    relevant = [{i: 1.0 for i in groups[row["group"]] if i != place} for place, row in enumerate(rows)]
    return RetrievalTask(name=name, queries=texts, corpus=texts, relevant=relevant, others_only=True, main="mrr")


def _answers(name: str, path: Path) -> Task:
    rows = _rows(path, "question", "passage", optional="question")
    asked = [(row["question"], place) for place, row in enumerate(rows) if row["question"]]
    return RetrievalTask(
        name=name,
        queries=[question for question, _ in asked],
        corpus=[row["passage"] for row in rows],
        relevant=[{place: 1.0} for _, place in asked],
        main="mrr",
    )


def _topics(name: str, path: Path) -> Task:
    rows = _rows(path, "topic", "text")
    texts, topics = [row["text"] for row in rows], [row["topic"] for row in rows]
    # A tolerance of a few tenths of a point needs a score that changes in fine steps: precision, not accuracy.
    return NeighbourTask(name=name, items=texts, labels=topics, main="precision@10")


def _long(name: str, path: Path) -> Task:
    rows = _rows(path, "summary", "text")
    queries: list[tuple[str, int]] = []
    for place, row in enumerate(rows):
        sentences = [each for each in _SENTENCE_END.split(row["text"]) if len(each.split()) >= _SHORTEST]
        queries += [(query, place) for query in (row["summary"], *sentences)]
    return RetrievalTask(
        name=name,
        queries=[query for query, _ in queries],
        corpus=[row["text"] for row in rows],
        relevant=[{place: 1.0} for _, place in queries],
        main="mrr",
    )


_BUILDERS: Mapping[str, Callable[[str, Path], Task]] = dict(
    zip(GUARD_TASKS, (_questions, _answers, _topics, _long), strict=True)
)
