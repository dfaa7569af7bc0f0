"""Guards: search and classification that a change of a model must not harm.

A guard is a `Task` (task.py), made by one of `_BUILDERS`. The bundled guard set was written for this project
(docs/data/development-sets.md). A folder of one's own may hold any
of its four tables, and searches without labels.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

from opencse.evaluation.data_files import complete_rows
from opencse.evaluation.retrieval import KeptHitsTask, NeighbourTask, RetrievalTask
from opencse.evaluation.task import Task
from opencse.foundation.errors import OpencseError
from opencse.foundation.numbers import LEAST_ROWS
from opencse.foundation.progress import note
from opencse.foundation.reading import ASSETS, existing_path
from opencse.text.corpus import Corpus, query_column

_SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[A-Z])")
_SEARCHES, _DOCUMENTS = "searches.txt", "documents.txt"
_MOST_SEARCHES, _MOST_DOCUMENTS = 1000, 5000  # from the beginning of each file: a run is scored up to seven times
_SHORTEST = 5  # words of a sentence that is a query of its own; "Others don't." could stand anywhere


def load_guard(path: str | Path | None = None, *, prefix: str = "guard", documents: Iterable[str] = ()) -> list[Task]:
    """Load guard tasks.

    Args:
        path: A folder that holds any of these files, or the last of them alone; None for the guard set that comes with
            the package.

            - `questions.tsv` (`group`, `question`): every question searches for the others of its group.
            - `answers.tsv` (`question`, `passage`): every question searches all passages for its own; a row without a
              question is one more passage to search.
            - `topics.tsv` (`topic`, `text`): the ten nearest texts of each text should have its topic.
            - `long.tsv` (`summary`, `text`): the summary and every sentence of a text search for that text.
            - `searches.txt`, one search per line, without labels: what the untouched model, which is the first that is
              scored, finds first stays among the ten nearest. They search `documents.txt`, one text per line. The first
              1,000 searches and 5,000 texts are taken.

        prefix: What the names of the tasks begin with, before `-questions` and so on.
        documents: Texts to search where there is no `documents.txt`.

    Returns:
        The tasks, in the order of `GUARD_TASKS`, and then that of the searches; of a folder of one's own those whose
        file is there.

    Raises:
        OpencseError: There is none of the files, or one of them lacks a column or a text.
    """
    chosen = ASSETS / "guard" if path is None else existing_path(path)
    if os.path.isfile(chosen):  # false for any path, where Path.is_file raises
        return [_searches(f"{prefix}-searches", chosen, documents)]
    found: list[Task] = []
    for table, build in _BUILDERS.items():
        file = chosen / f"{table}.tsv"
        if os.path.isfile(file):
            found.append(build(f"{prefix}-{table}", file))
    if os.path.isfile(chosen / _SEARCHES):
        if os.path.isfile(chosen / _DOCUMENTS):
            documents = Corpus(chosen / _DOCUMENTS).texts()
        found.append(_searches(f"{prefix}-searches", chosen / _SEARCHES, documents))
    if not found:
        tables = ", ".join(f"{table}.tsv" for table in _BUILDERS)
        raise OpencseError(f"{chosen} holds no guard", f"Put one of these files there: {tables}, {_SEARCHES}.")
    return found


def _rows(path: Path, *columns: str, optional: str = "") -> list[dict[str, str]]:
    """Read the text columns of a table; only the optional one may be empty."""
    names = (*columns, optional)
    found = complete_rows(path, others=columns)
    rows = [{name: str(row.get(name) or "").strip() for name in names} for _, row in found]
    if len(rows) < LEAST_ROWS:
        note(f"{path}: {len(rows)} rows are too few for a guard: chance decides (at least {LEAST_ROWS})")
    return rows


def _questions(name: str, path: Path) -> Task:
    rows = _rows(path, "group", "question")
    groups: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        groups.setdefault(row["group"], []).append(place)
    alone = next((group for group, places in groups.items() if len(places) < 2), None)
    if alone is not None:
        raise OpencseError(f"{path}: the group {alone!r} has one question", "Give each group two or more.")
    searches = [(row["question"], [i for i in groups[row["group"]] if i != place]) for place, row in enumerate(rows)]
    return _retrieval(name, searches, [row["question"] for row in rows], others_only=True)


def _answers(name: str, path: Path) -> Task:
    rows = _rows(path, "passage", optional="question")
    searches = [(row["question"], [place]) for place, row in enumerate(rows) if row["question"]]
    return _retrieval(name, searches, [row["passage"] for row in rows])


def _long(name: str, path: Path) -> Task:
    rows, searches = _rows(path, "summary", "text"), []
    for place, row in enumerate(rows):
        sentences = [each for each in _SENTENCE_END.split(row["text"]) if len(each.split()) >= _SHORTEST]
        searches += [(query, [place]) for query in (row["summary"], *sentences)]
    return _retrieval(name, searches, [row["text"] for row in rows])


def _retrieval(
    name: str, searches: Sequence[tuple[str, Sequence[int]]], corpus: Sequence[str], *, others_only: bool = False
) -> Task:
    """Return a task whose searches should find the texts at some places of the corpus."""
    queries, relevant = [query for query, _ in searches], [dict.fromkeys(places, 1.0) for _, places in searches]
    return RetrievalTask(
        name=name, queries=queries, corpus=corpus, relevant=relevant, others_only=others_only, main="mrr"
    )


def _topics(name: str, path: Path) -> Task:
    rows = _rows(path, "topic", "text")
    texts, topics = [row["text"] for row in rows], [row["topic"] for row in rows]
    return NeighbourTask(name=name, items=texts, labels=topics)


def _searches(name: str, path: Path, documents: Iterable[str]) -> Task:
    file = Corpus(path)
    searches = _first(file.texts(query_column(file.columns, path)), _MOST_SEARCHES)
    searched = _first(documents, _MOST_DOCUMENTS)
    if not searched:
        raise OpencseError(f"{path}: no texts to search", f"Put {_DOCUMENTS} beside it, one text per line.")
    return KeptHitsTask(name, searches, searched)


def _first(texts: Iterable[str], most: int) -> list[str]:
    """Return the distinct texts among the first ones."""
    return list(dict.fromkeys(" ".join(text.split()) for text in islice(texts, most)))


_BUILDERS = {"questions": _questions, "answers": _answers, "topics": _topics, "long": _long}
GUARD_TASKS = tuple(f"guard-{table}" for table in _BUILDERS)
"""The tasks of the bundled guard set."""
