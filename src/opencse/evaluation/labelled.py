"""Texts, or pairs of texts, with a class each, and the tasks on them: transfer (SentEval) and classification.

They are read from this project's table layout or a SentEval folder. Rows of SentEval's tasks are in
SentEval's order (by number of words, then by class), on which its folds and batches depend.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from opencse.evaluation.cross_validation import CrossValidation, Predictions, cross_validate
from opencse.evaluation.task import (
    PUBLISHED_ROWS,
    SENTEVAL,
    TaskResult,
    TextEmbeddings,
    TextVariant,
    check_count,
    complete_rows,
    find_file,
    find_folder,
    respaced,
    rows_sha256,
    senteval_cells,
)
from opencse.foundation.errors import OpencseError
from opencse.foundation.tables import TABLES, read_lines, table_columns

TRANSFER_TASKS = ("MR", "CR", "SUBJ", "MPQA", "SST2", "TREC", "MRPC")
"""The seven tasks, in the order of the papers' tables."""

CLASSIFICATION_TASKS = (
    "Banking77",
    "Emotion",
    "CLINC150",
    "AmazonCounterfactual",
    "TweetSentiment",
)
"""Named tasks; any folder with a training and a test part is a task, too."""

LabelledRow = tuple[str, ...]
"""Class and text, and for pairs the second text."""

_SENTEVAL_FOLDERS = {"SST2": "SST/binary"}

_TWO_CLASS_FILES = {  # files of SentEval's two-class tasks, class 1 first, as SentEval reads them
    "MR": ("rt-polarity.pos", "rt-polarity.neg"),
    "CR": ("custrev.pos", "custrev.neg"),
    "SUBJ": ("subj.objective", "subj.subjective"),
    "MPQA": ("mpqa.pos", "mpqa.neg"),
}


@dataclass(frozen=True, kw_only=True, eq=False)
class LabelledSet:
    """A data set of texts, or of pairs of texts, with a class each.

    Args:
        name: Name of the task.
        parts: Rows by part: `train`, the only one of cross-validated tasks, then `dev` and `test`,
            if there are some.
        text: Text variant, as in `ScoredPairs`.

    Raises:
        OpencseError: A part is empty, there are fewer than two classes, or a class is missing in
            the training part.
    """

    name: str
    parts: Mapping[str, Sequence[LabelledRow]]
    text: str = "given"

    def __post_init__(self) -> None:
        for part, rows in self.parts.items():
            if not rows:
                raise OpencseError(f"{self.name} {part} holds no text", "Give labelled texts.")
            if unknown := sorted({row[0] for row in rows} - {*self.classes}):
                raise OpencseError(
                    f"{self.name} {part}: the class {unknown[0]!r} does not occur in the training part",
                    "Add training texts of this class, or drop it.",
                )
        if len(self.classes) < 2:
            problem = f"{self.name}: all texts are of one class, {self.classes[0]!r}"
            raise OpencseError(problem, "Give two classes or more.")

    @property
    def classes(self) -> list[str]:
        """Names of the classes, sorted."""
        return sorted({row[0] for row in self.parts["train"]})

    def indices(self, rows: Sequence[LabelledRow]) -> np.ndarray:
        """Return the classes of rows as indices into `classes`, int64 (n,)."""
        index_of = {name: index for index, name in enumerate(self.classes)}
        return np.array([index_of[row[0]] for row in rows], dtype=np.int64)

    @property
    def sha256(self) -> str:
        """Hash of all rows of all parts, in order."""
        return rows_sha256(
            [part, row[1], row[-1], row[0]] for part, rows in self.parts.items() for row in rows
        )

    def texts(self) -> Iterator[str]:
        """Yield all texts of all parts."""
        return (text for rows in self.parts.values() for row in rows for text in row[1:])


def features(embeddings: TextEmbeddings, rows: Sequence[LabelledRow]) -> np.ndarray:
    """Return vectors of texts (n, d), or (|u - v|, u * v) of pairs (n, 2d), float32."""
    _, *texts = zip(*rows, strict=True)
    first, *second = (np.asarray(embeddings(column), dtype=np.float32) for column in texts)
    return (
        np.concatenate([np.abs(first - second[0]), first * second[0]], axis=1) if second else first
    )


@dataclass(frozen=True, kw_only=True, eq=False)
class TransferTask(LabelledSet):
    """Accuracy of a linear classifier of the frozen vectors.

    The parts of the data decide the protocol: with a training part only, nested cross-validation;
    with training and test, cross-validation on the training part; with a development part too, a
    single training. A pair (u, v) has the features (|u - v|, u * v).

    Metrics: `accuracy` (the main one) and `dev_accuracy`, in percent; for pairs also `f1` of the
        class that sorts last.

    Args:
        protocol: Folds and training.
    """

    protocol: CrossValidation = field(default_factory=CrossValidation)

    def score(self, embeddings: TextEmbeddings) -> TaskResult:
        """Train the classifiers, and return their scores on the test rows."""
        folds = None if "dev" in self.parts else self.protocol.folds
        rarest, least = Counter(row[0] for row in self.parts["train"]).most_common()[-1]
        if folds is not None and least < folds:
            problem = f"{self.name}: the class {rarest!r} has {least} training texts, and cross-validation in {folds}"
            raise OpencseError(f"{problem} folds needs {folds}", "Add texts.")
        predictions, tested = self.predict(embeddings)
        metrics: dict[str, float | None] = {
            "accuracy": predictions.accuracy,
            "dev_accuracy": predictions.dev_accuracy,
        }
        if len(tested[0]) > 2:
            last = len(self.classes) - 1
            metrics["f1"] = 100 * float(
                f1_score(self.indices(tested) == last, predictions.classes == last)
            )
        return TaskResult(
            task=self.name,
            main="accuracy",
            metrics=metrics,
            rows=len(tested),
            data_sha256=self.sha256,
            details={
                "text": self.text,
                "folds": folds,
                "penalties": list(predictions.penalties),
                "classes": len(self.classes),
            },
        )

    def predict(self, embeddings: TextEmbeddings) -> tuple[Predictions, Sequence[LabelledRow]]:
        """Train, and return the predictions and the rows that they belong to."""
        parts = [*self.parts.values()] if "test" in self.parts else [self.parts["train"]]
        columns = [(features(embeddings, rows), self.indices(rows)) for rows in parts]
        return cross_validate(columns, self.protocol, f"classify {self.name}"), parts[-1]


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassificationTask(LabelledSet):
    """Accuracy of a classifier of the frozen vectors on the test part.

    Metrics, in percent: `accuracy` (the main one) and macro-averaged `f1`, after training on all
    training texts.

    Raises:
        OpencseError: There is no test part.
    """

    def __post_init__(self) -> None:
        super().__post_init__()
        if "test" not in self.parts:
            raise OpencseError(
                f"{self.name} has no test part", "Add a file test.tsv (or .csv, .jsonl) to it."
            )

    def score(self, embeddings: TextEmbeddings) -> TaskResult:
        """Train the classifiers and return their scores on the test part."""
        train, test = self.parts["train"], self.parts["test"]
        x, x_test, y_test = (
            features(embeddings, train),
            features(embeddings, test),
            self.indices(test),
        )
        predicted = LogisticRegression(max_iter=1000).fit(x, self.indices(train)).predict(x_test)
        f1 = 100 * float(f1_score(y_test, predicted, average="macro"))
        return TaskResult(
            task=self.name,
            main="accuracy",
            metrics={"accuracy": 100 * float((predicted == y_test).mean()), "f1": f1},
            rows=len(test),
            data_sha256=self.sha256,
            details={
                "text": self.text,
                "classifier": "scikit-learn logistic regression, C = 1",
                "classes": len(self.classes),
                "training_rows": len(train),
            },
        )


def load_labelled(
    source: str | Path, task: str, *, text: TextVariant = "senteval"
) -> TransferTask | ClassificationTask:
    """Load one transfer or classification task and check its size.

    Args:
        source: A folder in this project's layout (`<task>/train.tsv.gz` and `test.tsv.gz`, or
            `data.tsv.gz` for a task without parts; `.csv`, `.tsv` or `.jsonl`, plain or `.gz`, with
            the columns `label` and `text`, or `label`, `sentence1` and `sentence2`; or its parent
            with an `eval` folder), or SentEval's `data/downstream` folder.
        task: Name of the folder: one of `TRANSFER_TASKS`, `CLASSIFICATION_TASKS`, or any other.
        text: `senteval`, the tokenised text, where the files have it (columns ending in
            `_senteval`), or `raw`.

    Raises:
        OpencseError: There is no such task, or a file is invalid; the message names it.
    """
    parts, variant = _read(source, task, text)
    for (name, part), count in PUBLISHED_ROWS.items():
        if name == task:
            check_count(f"{task} {part}", len(parts.get(part, ())), "rows", count)
    if task in TRANSFER_TASKS:
        for rows in parts.values():
            rows.sort(key=lambda row: (*(len(text.split()) for text in row[1:]), row[0]))
        return TransferTask(name=task, text=variant, parts=parts)
    parts.pop("dev", None)  # not used by the protocol
    return ClassificationTask(name=task, text=variant, parts=parts)


def _read(
    source: str | Path, task: str, text: TextVariant
) -> tuple[dict[str, list[LabelledRow]], str]:
    """Return the rows of each part, and their text variant."""
    folder = find_folder(source, task)
    if folder is not None and (train := _table(folder, "train", "data")) is not None:
        paths = {"train": train, "dev": _table(folder, "dev"), "test": _table(folder, "test")}
        both = any(name.endswith("_senteval") for name in table_columns(train))
        ending = "_senteval" if both and text == "senteval" else ""
        clean = respaced if ending or task in TRANSFER_TASKS else str
        tables = {
            part: [*_table_rows(path, ending, clean)]
            for part, path in paths.items()
            if path is not None
        }
        return tables, text if both else "released"
    folder = find_folder(source, _SENTEVAL_FOLDERS.get(task, task), below=SENTEVAL)
    if folder is not None and task in TRANSFER_TASKS:
        if text != "senteval":
            raise OpencseError(
                f"{folder} is a SentEval folder, which has the SentEval text only", "Use senteval."
            )
        return _from_senteval(folder, task), "senteval"
    raise OpencseError(
        f"{source} holds no {task}" if Path(source).is_dir() else f"{source} is not a folder",
        f"Give a folder with {task}/train.tsv (or data.tsv), or leave the task out.",
    )


def _table(folder: Path, *parts: str) -> Path | None:
    return find_file(folder, *(f"{part}{kind}" for part in parts for kind in TABLES))


def _table_rows(path: Path, ending: str, clean: Callable[[str], str]) -> Iterator[LabelledRow]:
    names = ["text"] if "text" in table_columns(path) else ["sentence1", "sentence2"]
    columns = [f"{name}{ending}" for name in names]
    for line, row in complete_rows(path, others=["label"]):
        texts: list[Any] = [row.get(column) for column in columns]  # published texts may be empty
        if not all(isinstance(text, str) for text in texts):
            raise OpencseError(
                f"{path}, line {line}: no text in {', '.join(columns)}", "Give every row its text."
            )
        yield (str(row["label"]).strip(), *map(clean, texts))


def _from_senteval(folder: Path, task: str) -> dict[str, list[LabelledRow]]:
    """Read SentEval's files by SentEval's rules (senteval/binary.py, sst.py, trec.py, mrpc.py)."""
    if task in _TWO_CLASS_FILES:
        files = zip(("1", "0"), _TWO_CLASS_FILES[task], strict=True)
        read = ((label, read_lines(folder / name, "latin-1")) for label, name in files)
        return {"train": [(label, respaced(line)) for label, lines in read for _, line in lines]}
    if task == "TREC":
        names = {"train": "train_5500.label", "test": "TREC_10.label"}
        return {part: [*_questions(folder / name)] for part, name in names.items()}
    if task == "SST2":
        cells = {
            part: senteval_cells(folder / f"sentiment-{part}", 1, 0)
            for part in ("train", "dev", "test")
        }
    else:
        pairs = {part: folder / f"msr_paraphrase_{part}.txt" for part in ("train", "test")}
        cells = {part: senteval_cells(path, 0, 3, 4, header=True) for part, path in pairs.items()}
    return {part: [tuple(row) for _, row in rows] for part, rows in cells.items()}


def _questions(path: Path) -> Iterator[LabelledRow]:
    """Yield class and question of lines like `ABBR:exp What does … ?`."""
    for number, line in read_lines(path, "latin-1"):
        label, _, rest = line.strip().partition(":")
        _, space, question = rest.partition(" ")
        if not label or not space:
            raise OpencseError(f"{path}, line {number}: no class and question", "Fetch it again.")
        yield label, respaced(question)
