"""The common parts of all tasks: interface, one encoding pass, and strict reading of their data."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, Literal, Protocol

import numpy as np

from opencse.foundation.errors import OpencseError
from opencse.foundation.numbers import unit_rows
from opencse.foundation.reading import ASSETS
from opencse.foundation.roles import encode_roles, plain
from opencse.foundation.tables import read_lines, read_table, require_text, table_rows

Encode = Callable[[Sequence[str]], np.ndarray]
"""A model: from n texts to a float matrix (n, d)."""

Similarity = Callable[[np.ndarray, np.ndarray], Any]
"""Similarities (n, m) of n and m vectors: `opencse.Reranker.similarity`."""

# Pairs at a time, which bounds the memory of the similarities.
_PAIRS = 256


class TextEmbeddings:
    """Lookup of the vectors of encoded texts.

    Args:
        texts: m distinct texts.
        matrix: Vectors (m, d), row i for text i.
        similarity: Similarity by which texts are compared; None for the cosine.
    """

    def __init__(
        self, texts: Sequence[str], matrix: np.ndarray, similarity: Similarity | None = None
    ) -> None:
        if len(texts) != len(matrix):
            raise OpencseError(f"the model returned {len(matrix)} vectors for {len(texts)} texts")
        if not np.isfinite(matrix).all():
            row = int(np.flatnonzero(~np.isfinite(matrix).all(axis=1))[0])
            raise OpencseError(
                f"the model returned a vector that is not finite, for the text {texts[row][:60]!r}",
                "The weights are damaged, or the precision is too low for this model: try fp32.",
            )
        self._row = {text: row for row, text in enumerate(texts)}
        self._matrix = matrix
        self.similarity = similarity

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors (n, d) of n texts that were encoded."""
        return self._matrix[[self._place(text) for text in texts]]

    def _place(self, text: str) -> int:
        place = self._row.get(text)
        return self._row[plain(text)] if place is None else place

    def sides(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors (n, d) to compare n texts by: of length 1, unless the similarity takes them as they are."""
        vectors = self(texts)
        return vectors if getattr(self.similarity, "raw", False) else unit_rows(vectors)

    def compared(self, first: Sequence[str], second: Sequence[str]) -> np.ndarray:
        """Return the similarities (n, m) of n and m encoded texts."""
        a = self.sides(first)
        b = self.sides(second)
        if self.similarity is None:
            return a @ b.T
        return np.asarray(self.similarity(a, b))

    def paired(self, first: Sequence[str], second: Sequence[str]) -> np.ndarray:
        """Return the similarities (n,) of n pairs of encoded texts."""
        a = self(first)
        b = self(second)
        if self.similarity is None:
            return paired_cosine(a, b)
        parts = []
        # At least one part, so that no pairs give an empty array.
        for start in range(0, max(1, len(a)), _PAIRS):
            rows = slice(start, start + _PAIRS)
            parts.append(np.diagonal(self.similarity(a[rows], b[rows])))
        return np.concatenate(parts)


def paired_cosine(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the cosines (n,) of paired rows of `a` and `b` (n, d); 0 if a row is zero (SimCSE).

    Computed in float32 by sentence-transformers' own function. Rounding orders pairs of equal
    sentences, whose cosine is 1 up to 1e-7, arbitrarily. Ties would be cleaner, but would change
    STS12, which has 79 of them, by 0.0025 points from the value of sentence-transformers.
    """
    from sentence_transformers.util import pairwise_cos_sim

    a = np.asarray(a, dtype=np.float32)
    b = np.asarray(b, dtype=np.float32)
    return pairwise_cos_sim(a, b).numpy()


@dataclass(frozen=True, kw_only=True)
class TaskResult:
    """Scores of one task.

    Args:
        task: Name of the task.
        main: Name of the metric that enters averages; None if none does.
        metrics: Metrics by name; correlations and accuracies times 100. None is undefined, with the
            reason in `undefined`.
        rows: Number of test items.
        data_sha256: Hash of the test items, to detect different data under the same name; by default
            that of the texts of the task.
        undefined: Reason for each undefined metric, by name.
        details: Further results and settings (scores by subset, the text variant, …); JSON types
            only.
    """

    task: str
    main: str | None
    metrics: Mapping[str, float | None]
    rows: int
    data_sha256: str = ""
    undefined: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)

    @property
    def score(self) -> float | None:
        """The main metric."""
        return None if self.main is None else self.metrics[self.main]


def rows_sha256(rows: Iterable[object], end: str = "") -> str:
    """Return the hash of rows of JSON types in their order, each followed by `end`."""
    digest = hashlib.sha256()
    for row in rows:
        digest.update(f"{json.dumps(row)}{end}".encode())
    return digest.hexdigest()


class HasTexts(Protocol):
    """Anything whose texts are encoded."""

    def texts(self) -> Iterable[str]:
        """Return every text whose vector is needed; repetitions cost nothing."""


class Task(HasTexts, Protocol):
    """A test set with its metric. Any object with these three members can be evaluated."""

    @property
    def name(self) -> str:
        """Name in tables and files."""

    def score(self, embeddings: TextEmbeddings) -> TaskResult:
        """Return the scores of the vectors."""


@dataclass(frozen=True, kw_only=True)
class Results:
    """The results of several tasks.

    Args:
        results: One per task, in the order asked for.
    """

    results: tuple[TaskResult, ...]

    @property
    def metric(self) -> str | None:
        """The main metric that all tasks share; None if they have different ones, or none."""
        mains = {result.main for result in self.results if result.main is not None}
        if len(mains) != 1:
            return None
        return mains.pop()

    @property
    def average(self) -> float | None:
        """Mean of the main metrics; None if they differ, if one is undefined, or if there is none.

        A correlation and an accuracy have no mean: `metric` names what is averaged.
        """
        if self.metric is None:
            return None
        scores = [result.score for result in self.results if result.main is not None]
        defined = [score for score in scores if score is not None]
        if not scores or len(defined) < len(scores):
            return None
        return sum(defined) / len(defined)

    def __getitem__(self, task: str) -> TaskResult:
        """Return the result of the task named `task`."""
        return next(result for result in self.results if result.task == task)


def distinct_texts(tasks: Iterable[HasTexts]) -> tuple[str, ...]:
    """Return the distinct texts of all tasks, in order of first occurrence."""
    return tuple(dict.fromkeys(text for task in tasks for text in task.texts()))


def score_tasks(tasks: Sequence[Task], embeddings: TextEmbeddings) -> Results:
    """Score tasks on the vectors of `distinct_texts(tasks)`, prepared once by a training loop."""
    results = []
    for task in tasks:
        result = task.score(embeddings)
        if not result.data_sha256:
            result = replace(result, data_sha256=rows_sha256(task.texts()))
        results.append(result)
    return Results(results=tuple(results))


def evaluate_tasks(
    encode: Encode, tasks: Sequence[Task], similarity: Similarity | None = None
) -> Results:
    """Encode every distinct text of all tasks once, then score each task.

    Args:
        encode: The model: an `opencse.encoder.embedder.Embedder`, the `encode` method of any
            library, or any function.
        tasks: The tasks.
        similarity: Similarity by which texts are compared; None for the cosine.
    """
    if not tasks:
        raise OpencseError("there is nothing to evaluate", "Name at least one task.")
    name, count = Counter(task.name for task in tasks).most_common(1)[0]
    if count > 1:
        raise OpencseError(
            f"two tasks are named {name!r}", "Rename one: results are keyed by name."
        )
    texts = distinct_texts(tasks)
    return score_tasks(tasks, TextEmbeddings(texts, encode_roles(encode, texts), similarity))


TextVariant = Literal["senteval", "raw"]
"""`senteval` is the tokenised text of published scores, `raw` the text as released."""

SENTEVAL = ("", "downstream", "data/downstream")
"""Where SentEval's download script leaves its folders."""

PUBLISHED_ROWS = {
    (str(row["task"]), str(row["part"])): int(str(row["rows"]))
    for _, row in read_table(ASSETS / "evaluation" / "published-rows.tsv")
}
"""Published number of rows by task and part; STS13 is without SMT, which is not redistributed."""


def find_folder(
    source: str | Path, *names: str, below: Sequence[str] = ("", "eval")
) -> Path | None:
    """Return the first folder with one of these names in `source` or in its folders `below`."""
    for root in below:
        for name in names:
            folder = Path(source) / root / name
            if folder.is_dir():
                return folder
    return None


def find_file(folder: Path, *names: str) -> Path | None:
    """Return the first of some files that exists in a folder, with or without a final `.gz`."""
    for name in names:
        for path in (folder / f"{name}.gz", folder / name):
            if path.exists():
                return path
    return None


def complete_rows(
    path: Path, *texts: str, others: Sequence[str] = ()
) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """Yield line number and cells of the rows of a table; blank lines are skipped.

    Args:
        path: A `.csv`, `.tsv` or `.jsonl` file, plain or `.gz`, or a `.parquet` file.
        texts: Columns that hold a text in every row.
        others: Columns that hold anything in every row.

    Raises:
        OpencseError: As `table_rows`; or a cell is empty, or there is no row. The message has the
            line number.
    """
    columns = (*texts, *others)
    count = 0
    for line, row in table_rows(path):
        if not row:
            continue
        for column in columns:
            cell = row.get(column)
            if cell is None or not str(cell).strip():
                remedy = f"Give every row the columns {', '.join(columns)}."
                raise OpencseError(
                    f"{path}, line {line}: no {column} among {', '.join(row)}", remedy
                )
            if column in texts:
                require_text(cell, column, path, line)
        count += 1
        yield line, row
    if not count:
        raise OpencseError(
            f"{path} holds no row", f"Give a row with the columns {', '.join(columns)}."
        )


def senteval_cells(
    path: Path, *places: int, header: bool = False
) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and some cells, by position, of a tab-separated file of SentEval.

    Raises:
        OpencseError: As `read_lines`, or a line has too few cells.
    """
    for line, text in islice(read_lines(path), header, None):
        cells = text.split("\t")
        if len(cells) <= max(places):
            raise OpencseError(
                f"{path}, line {line}: {len(cells)} tab-separated cells are too few",
                "Fetch it again.",
            )
        yield line, [respaced(cells[place]) for place in places]


def respaced(text: str) -> str:
    """Return the text with single spaces: SentEval splits it, SimCSE joins the words."""
    return " ".join(text.split())


def check_count(name: str, found: int, items: str, published: int) -> None:
    """Raise an `OpencseError` if a data set does not have the published number of items."""
    if found != published:
        raise OpencseError(
            f"{name} has {found} {items} instead of the published {published}",
            "The download is incomplete or filtered differently: fetch it again.",
        )
