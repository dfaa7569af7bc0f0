"""Labelled texts, or pairs of texts, and the tasks on them: transfer (SentEval), classification.

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

# Files of SentEval's two-class tasks, class 1 first, as SentEval reads them.
_TWO_CLASS_FILES = {
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
        parts: Rows by part: `train`, the only one of cross-validated tasks, then `dev` and `test`
            if they exist.
        text: Text variant, as in `ScoredPairs`.

    Raises:
        OpencseError: A part is empty, there are fewer than two classes, or a class is missing in
            the training part.
    """

    name: str
    parts: Mapping[str, Sequence[LabelledRow]]
    text: str = "given"

    def __post_init__(self) -> None:
        classes = set(self.classes)
        for part, rows in self.parts.items():
            if not rows:
                raise OpencseError(f"{self.name} {part} holds no text", "Give labelled texts.")
            unknown = sorted({row[0] for row in rows} - classes)
            if unknown:
                raise OpencseError(
                    f"{self.name} {part}: the class {unknown[0]!r} does not occur in the training "
                    "part",
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
        rows = []
        for part, part_rows in self.parts.items():
            for row in part_rows:
                # The first and the last text, which are the same if there is only one.
                rows.append([part, row[1], row[-1], row[0]])
        return rows_sha256(rows)

    def texts(self) -> Iterator[str]:
        """Yield all texts of all parts."""
        for rows in self.parts.values():
            for row in rows:
                yield from row[1:]


def features(embeddings: TextEmbeddings, rows: Sequence[LabelledRow]) -> np.ndarray:
    """Return vectors of texts (n, d), or (|u - v|, u * v) of pairs (n, 2d), float32."""
    _, *columns = zip(*rows, strict=True)
    vectors = [np.asarray(embeddings(column), dtype=np.float32) for column in columns]
    if len(vectors) == 1:
        return vectors[0]
    first, second = vectors
    return np.concatenate([np.abs(first - second), first * second], axis=1)


@dataclass(frozen=True, kw_only=True, eq=False)
class TransferTask(LabelledSet):
    """Accuracy of a linear classifier on the frozen vectors.

    The parts of the data decide the protocol: with a training part only, nested cross-validation;
    with training and test, cross-validation on the training part; with a development part as well,
    a single training. A pair (u, v) has the features (|u - v|, u * v).

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
            raise OpencseError(
                f"{self.name}: the class {rarest!r} has {least} training texts, and "
                f"cross-validation in {folds} folds needs {folds}",
                "Add texts.",
            )
        predictions, tested = self.predict(embeddings)
        metrics: dict[str, float | None] = {
            "accuracy": predictions.accuracy,
            "dev_accuracy": predictions.dev_accuracy,
        }
        is_pairs = len(tested[0]) > 2
        if is_pairs:
            last = len(self.classes) - 1
            f1 = f1_score(self.indices(tested) == last, predictions.classes == last)
            metrics["f1"] = 100 * float(f1)
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
        """Train, and return the predictions and the rows they belong to."""
        used = [self.parts["train"]]
        if "test" in self.parts:
            used = list(self.parts.values())
        columns = [(features(embeddings, rows), self.indices(rows)) for rows in used]
        return cross_validate(columns, self.protocol, f"classify {self.name}"), used[-1]


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassificationTask(LabelledSet):
    """Accuracy of a classifier on the frozen vectors of the test part.

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
        train = self.parts["train"]
        test = self.parts["test"]
        classifier = LogisticRegression(max_iter=1000)
        classifier.fit(features(embeddings, train), self.indices(train))
        predicted = classifier.predict(features(embeddings, test))
        expected = self.indices(test)
        accuracy = 100 * float((predicted == expected).mean())
        f1 = 100 * float(f1_score(expected, predicted, average="macro"))
        return TaskResult(
            task=self.name,
            main="accuracy",
            metrics={"accuracy": accuracy, "f1": f1},
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
        text: `senteval`, the tokenised text, if the files have it (columns ending in `_senteval`),
            or `raw`.

    Raises:
        OpencseError: There is no such task, or a file is invalid; the message names it.
    """
    parts, variant = _read(source, task, text)
    for (name, part), count in PUBLISHED_ROWS.items():
        if name == task:
            check_count(f"{task} {part}", len(parts.get(part, ())), "rows", count)
    if task in TRANSFER_TASKS:
        for rows in parts.values():
            # SentEval's order: by number of words, then by class.
            rows.sort(key=lambda row: (*(len(text.split()) for text in row[1:]), row[0]))
        return TransferTask(name=task, text=variant, parts=parts)
    # The protocol uses no development part.
    parts.pop("dev", None)
    return ClassificationTask(name=task, text=variant, parts=parts)


def _read(
    source: str | Path, task: str, text: TextVariant
) -> tuple[dict[str, list[LabelledRow]], str]:
    """Return the rows of each part, and their text variant."""
    folder = find_folder(source, task)
    train = None if folder is None else _table(folder, "train", "data")
    if folder is not None and train is not None:
        both = any(name.endswith("_senteval") for name in table_columns(train))
        ending = "_senteval" if both and text == "senteval" else ""
        clean = respaced if ending or task in TRANSFER_TASKS else str
        tables = {}
        for part in ("train", "dev", "test"):
            path = train if part == "train" else _table(folder, part)
            if path is not None:
                tables[part] = list(_table_rows(path, ending, clean))
        return tables, text if both else "released"
    folder = find_folder(source, _SENTEVAL_FOLDERS.get(task, task), below=SENTEVAL)
    if folder is not None and task in TRANSFER_TASKS:
        if text != "senteval":
            raise OpencseError(
                f"{folder} is a SentEval folder, which has the SentEval text only", "Use senteval."
            )
        return _from_senteval(folder, task), "senteval"
    is_folder = Path(source).is_dir()
    raise OpencseError(
        f"{source} holds no {task}" if is_folder else f"{source} is not a folder",
        f"Give a folder with {task}/train.tsv (or data.tsv), or leave the task out.",
    )


def _table(folder: Path, *parts: str) -> Path | None:
    names = []
    for part in parts:
        names += [f"{part}{kind}" for kind in TABLES]
    return find_file(folder, *names)


def _table_rows(path: Path, ending: str, clean: Callable[[str], str]) -> Iterator[LabelledRow]:
    names = ["text"] if "text" in table_columns(path) else ["sentence1", "sentence2"]
    columns = [f"{name}{ending}" for name in names]
    for line, row in complete_rows(path, others=["label"]):
        # Published texts may be empty, but not missing.
        texts: list[Any] = [row.get(column) for column in columns]
        if not all(isinstance(text, str) for text in texts):
            raise OpencseError(
                f"{path}, line {line}: no text in {', '.join(columns)}", "Give every row its text."
            )
        yield (str(row["label"]).strip(), *map(clean, texts))


def _from_senteval(folder: Path, task: str) -> dict[str, list[LabelledRow]]:
    """Read SentEval's files by SentEval's rules (senteval/binary.py, sst.py, trec.py, mrpc.py)."""
    if task in _TWO_CLASS_FILES:
        rows: list[LabelledRow] = []
        for label, name in zip(("1", "0"), _TWO_CLASS_FILES[task], strict=True):
            for _, line in read_lines(folder / name, "latin-1"):
                rows.append((label, respaced(line)))
        return {"train": rows}
    if task == "TREC":
        return {
            "train": list(_questions(folder / "train_5500.label")),
            "test": list(_questions(folder / "TREC_10.label")),
        }
    parts: dict[str, list[LabelledRow]] = {}
    if task == "SST2":
        for part in ("train", "dev", "test"):
            cells = senteval_cells(folder / f"sentiment-{part}", 1, 0)
            parts[part] = [tuple(row) for _, row in cells]
        return parts
    for part in ("train", "test"):
        path = folder / f"msr_paraphrase_{part}.txt"
        cells = senteval_cells(path, 0, 3, 4, header=True)
        parts[part] = [tuple(row) for _, row in cells]
    return parts


def _questions(path: Path) -> Iterator[LabelledRow]:
    """Yield class and question of lines like `ABBR:exp What does … ?`."""
    for number, line in read_lines(path, "latin-1"):
        label, _, rest = line.strip().partition(":")
        _, space, question = rest.partition(" ")
        if not label or not space:
            raise OpencseError(f"{path}, line {number}: no class and question", "Fetch it again.")
        yield label, respaced(question)
