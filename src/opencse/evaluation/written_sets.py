"""Sets written for opencse: guards, which a model must not get worse on, and development sets.

docs/data/development-sets.md describes them. A guard is search or classification, a `Task` made by
one of `_BUILDERS`; a custom folder may hold any of its four tables, and searches without labels.
Triplets ask if a text is nearer to its paraphrase than to its contradiction.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from opencse.evaluation.retrieval import KeptHitsTask, NeighbourTask, RetrievalTask
from opencse.evaluation.task import Task, TaskResult, TextEmbeddings, complete_rows, rows_sha256
from opencse.foundation.errors import OpencseError
from opencse.foundation.numbers import LEAST_ROWS
from opencse.foundation.progress import note
from opencse.foundation.reading import ASSETS, existing_path
from opencse.foundation.tables import table_columns
from opencse.text.corpus import Corpus, query_column, text_column
from opencse.text.memory_tables import data_file

_SENTENCE_END = re.compile(r"(?<=[.!?]) (?=[A-Z])")
# Only the beginning of each file is used, because a run is scored up to seven times.
_MOST_SEARCHES = 1000
_MOST_DOCUMENTS = 5000
# Shorter sentences, in words, are no queries: "Others don't." could stand anywhere.
_SHORTEST = 5


def load_guard(
    given: Any = None, *, prefix: str = "guard", documents: Iterable[str] = ()
) -> list[Task]:
    """Load guard tasks.

    Args:
        given: A folder that holds any of these files; a mapping with any of these tables in memory,
            by the names of the files without their ending; the searches alone, as a file or in
            memory; or None for the guard set that comes with the package.

            - `questions.tsv` (`group`, `question`): every question searches for the others of its
              group.
            - `answers.tsv` (`question`, `passage`): every question searches all passages for its
              own; a row without a question is one more passage to search.
            - `topics.tsv` (`topic`, `text`): the ten nearest texts of each text should have its
            topic.
            - `long.tsv` (`summary`, `text`): the summary and every sentence of a text search for
            that text.
            - `searches.txt`, one search per line, without labels: what the untouched model, which
              is the first that is scored, finds first stays among the ten nearest. They search
              `documents.txt`, one text per line. The first 1,000 searches and 5,000 texts are
              taken.

        prefix: Beginning of the tasks' names, before `-questions` and so on.
        documents: Texts to search if there is no `documents.txt`.

    Returns:
        The tasks, in the order of `GUARD_TASKS`, and then that of the searches; for a custom folder
        only those whose file exists.

    Raises:
        OpencseError: There is none of the files, or one of them lacks a column or a text.
    """
    files = _guard_files(ASSETS / "guard" if given is None else given)
    tasks: list[Task] = []
    for table, build in _BUILDERS.items():
        if table in files:
            tasks.append(build(f"{prefix}-{table}", files[table]))
    if "searches" in files:
        if "documents" in files:
            searched = Corpus(files["documents"])
            documents = searched.texts(text_column(searched.columns, searched.path))
        tasks.append(_searches(f"{prefix}-searches", files["searches"], documents))
    if not tasks:
        tables = ", ".join(f"{table}.tsv" for table in _BUILDERS)
        raise OpencseError(
            f"{given} holds no guard", f"Put one of these files there: {tables}, searches.txt."
        )
    return tasks


def _guard_files(given: Any) -> dict[str, Path]:
    """Return the file of each table of a guard, by its name without an ending."""
    if isinstance(given, Mapping) and given.keys() <= _GUARD_FILES.keys():
        return {table: data_file(rows) for table, rows in given.items()}
    path = existing_path(data_file(given))
    # Unlike Path.is_file, this is false for any path that cannot be read.
    if os.path.isfile(path):
        return {"searches": path}
    files = {}
    for table, name in _GUARD_FILES.items():
        if os.path.isfile(path / name):
            files[table] = path / name
    return files


def _rows(path: Path, *columns: str, optional: str = "") -> list[dict[str, str]]:
    """Read the text columns of a table; only the optional one may be empty."""
    names = (*columns, optional)
    numbered = complete_rows(path, others=columns)
    rows = []
    for _, row in numbered:
        rows.append({name: str(row.get(name) or "").strip() for name in names})
    if len(rows) < LEAST_ROWS:
        note(
            f"{path}: {len(rows)} rows are too few for a guard: chance decides (at least "
            f"{LEAST_ROWS})"
        )
    return rows


def _questions(name: str, path: Path) -> Task:
    rows = _rows(path, "group", "question")
    groups: dict[str, list[int]] = {}
    for place, row in enumerate(rows):
        groups.setdefault(row["group"], []).append(place)
    for group, places in groups.items():
        if len(places) < 2:
            raise OpencseError(
                f"{path}: the group {group!r} has one question", "Give each group two or more."
            )
    searches = []
    for place, row in enumerate(rows):
        others = [i for i in groups[row["group"]] if i != place]
        searches.append((row["question"], others))
    return _retrieval(name, searches, [row["question"] for row in rows], others_only=True)


def _answers(name: str, path: Path) -> Task:
    rows = _rows(path, "passage", optional="question")
    searches = []
    for place, row in enumerate(rows):
        if row["question"]:
            searches.append((row["question"], [place]))
    return _retrieval(name, searches, [row["passage"] for row in rows])


def _long(name: str, path: Path) -> Task:
    rows = _rows(path, "summary", "text")
    searches = []
    for place, row in enumerate(rows):
        searches.append((row["summary"], [place]))
        for sentence in _SENTENCE_END.split(row["text"]):
            if len(sentence.split()) >= _SHORTEST:
                searches.append((sentence, [place]))
    return _retrieval(name, searches, [row["text"] for row in rows])


def _retrieval(
    name: str,
    searches: Sequence[tuple[str, Sequence[int]]],
    corpus: Sequence[str],
    *,
    others_only: bool = False,
) -> Task:
    """Return a task whose searches should find the texts at some places of the corpus."""
    return RetrievalTask(
        name=name,
        queries=[query for query, _ in searches],
        corpus=corpus,
        relevant=[dict.fromkeys(places, 1.0) for _, places in searches],
        others_only=others_only,
        main="mrr",
    )


def _topics(name: str, path: Path) -> Task:
    """Return a task whose texts should have neighbours of the same topic."""
    rows = _rows(path, "topic", "text")
    return NeighbourTask(
        name=name, items=[row["text"] for row in rows], labels=[row["topic"] for row in rows]
    )


def _searches(name: str, path: Path, documents: Iterable[str]) -> Task:
    """Return a task whose searches should keep their first hits, whatever these are.

    Raises:
        OpencseError: There are no texts to search.
    """
    file = Corpus(path)
    searches = _first(file.texts(query_column(file.columns, path)), _MOST_SEARCHES)
    searched = _first(documents, _MOST_DOCUMENTS)
    if not searched:
        raise OpencseError(
            f"{path}: no texts to search", "Put documents.txt next to it, one text per line."
        )
    return KeptHitsTask(name, searches, searched)


def _first(texts: Iterable[str], most: int) -> list[str]:
    """Return the distinct texts among the first `most`, with single spaces."""
    return list(dict.fromkeys(" ".join(text.split()) for text in islice(texts, most)))


_BUILDERS = {"questions": _questions, "answers": _answers, "topics": _topics, "long": _long}
_GUARD_FILES = {
    **{table: f"{table}.tsv" for table in _BUILDERS},
    "searches": "searches.txt",
    "documents": "documents.txt",
}
GUARD_TASKS = tuple(f"guard-{table}" for table in _BUILDERS)
"""The tasks of the bundled guard set."""


DEVELOPMENT_SETS = ("meaning", "search", "roles")
"""The written development sets that come with the package (docs/data/development-sets.md)."""

DEVELOPMENT_TASKS = tuple(f"dev-{name}" for name in DEVELOPMENT_SETS)
"""The tasks on them."""

_TEXTS = ("anchor", "positive", "negative")


@dataclass(frozen=True, kw_only=True)
class Triplet:
    """A text, its paraphrase, and its contradiction.

    Attributes:
        id: Identifier within the set.
        anchor: The text; for a search, the query.
        positive: A paraphrase, or the passage that answers the query.
        negative: A contradiction, mostly in nearly the same words.
        groups: Group of the triplet, by column: `{"grade": "near", "kind": "verb"}`.
    """

    id: str
    anchor: str
    positive: str
    negative: str
    groups: Mapping[str, str]


@dataclass(frozen=True, kw_only=True)
class TripletSet:
    """A task: the share of triplets whose positive is closer to the anchor; ties count as wrong.

    Metrics, in percent: `accuracy` (the main one), and for each group `column: value`. Their counts
    are in `details["rows"]`. All triplets have the same grouping columns.

    Attributes:
        name: Name in tables and files.
        triplets: The rows, in the order of the file.
    """

    name: str
    triplets: tuple[Triplet, ...]

    def groups(self) -> dict[str, np.ndarray]:
        """Return the rows (int64) of every group `column: value`, in order of first occurrence."""
        members: dict[str, list[int]] = {}
        for column in self.triplets[0].groups:
            for row, triplet in enumerate(self.triplets):
                members.setdefault(f"{column}: {triplet.groups[column]}", []).append(row)
        return {group: np.array(rows, dtype=np.int64) for group, rows in members.items()}

    def texts(self) -> Iterator[str]:
        """Yield all three texts of every row."""
        for triplet in self.triplets:
            yield from (triplet.anchor, triplet.positive, triplet.negative)

    def margins(self, embeddings: TextEmbeddings) -> np.ndarray:
        """Return the cosine with the positive minus that with the negative, (n,); right if > 0."""
        anchors = [triplet.anchor for triplet in self.triplets]
        positives = [triplet.positive for triplet in self.triplets]
        negatives = [triplet.negative for triplet in self.triplets]
        return embeddings.paired(anchors, positives) - embeddings.paired(anchors, negatives)

    def score(self, embeddings: TextEmbeddings) -> TaskResult:
        """Return the share of triplets in the right order, over all and in each group."""
        right = self.margins(embeddings) > 0
        groups = self.groups()
        metrics: dict[str, float | None] = {"accuracy": 100 * float(right.mean())}
        for group, rows in groups.items():
            metrics[group] = 100 * float(right[rows].mean())
        table = []
        for triplet in self.triplets:
            texts = [triplet.id, triplet.anchor, triplet.positive, triplet.negative]
            table.append([*texts, dict(triplet.groups)])
        return TaskResult(
            task=self.name,
            main="accuracy",
            metrics=metrics,
            rows=len(right),
            data_sha256=rows_sha256([table]),
            details={"text": "given", "rows": {group: len(rows) for group, rows in groups.items()}},
        )


def load_development(prefix: str = "dev-") -> list[TripletSet]:
    """Return the sets of `DEVELOPMENT_SETS` with a prefix before their names.

    With the default prefix they are the tasks `DEVELOPMENT_TASKS`.

    Example:
        >>> load_development()[0].triplets[0].groups["grade"]
        'near'
    """
    sets = (read_triplets(ASSETS / "development" / f"{name}.tsv") for name in DEVELOPMENT_SETS)
    return [replace(triplets, name=f"{prefix}{triplets.name}") for triplets in sets]


def read_triplets(path: str | Path) -> TripletSet:
    """Read triplets from a `.tsv`, `.csv` or `.jsonl` file, plain or `.gz`.

    Args:
        path: A table with the columns `anchor`, `positive` and `negative`. A column `id` names the
            rows (by default their line); every other column groups them.

    Raises:
        OpencseError: The file cannot be read, a column or a text is missing, two rows have one id,
            or a positive or negative repeats its anchor or the other; the message names the line.
    """
    path = Path(path)
    columns = table_columns(path)
    triplets: dict[str, Triplet] = {}
    others = [name for name in columns if name not in _TEXTS]
    for line, row in complete_rows(path, *_TEXTS, others=others):
        cells = {name: str(row[name]).strip() for name in columns}
        anchor = cells.pop("anchor")
        positive = cells.pop("positive")
        negative = cells.pop("negative")
        name = cells.pop("id", f"line {line}")
        if name in triplets:
            raise OpencseError(f"{path}, line {line}: the id {name!r} occurs twice", "Rename one.")
        if len({anchor, positive, negative}) < 3:
            raise OpencseError(
                f"{path}, line {line}: two of the three texts are equal", "Drop the row."
            )
        triplets[name] = Triplet(
            id=name, anchor=anchor, positive=positive, negative=negative, groups=cells
        )
    return TripletSet(name=path.name.partition(".")[0], triplets=tuple(triplets.values()))
