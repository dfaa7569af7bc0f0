"""Transfer: a logistic regression on frozen sentence vectors, by SentEval's protocol (Conneau and Kiela 2018)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sklearn.metrics import f1_score

from opencse.evaluation.cross_validation import CrossValidation, Predictions, cross_validated, nested, split
from opencse.evaluation.labelled import Labelled, LabelledSet, features
from opencse.evaluation.task import Embeddings, TaskResult

TRANSFER_TASKS = ("MR", "CR", "SUBJ", "MPQA", "SST2", "TREC", "MRPC")
"""The seven tasks, in the order of the papers' tables."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TransferTask:
    """Scores how well classes can be read off the vectors.

    The parts that the data has choose the protocol: training part only, nested cross-validation; training and test,
    cross-validation on the training part; development too, a single training. A pair (u, v) has the features
    (|u - v|, u * v).

    Metrics: `accuracy` (the main one) and `dev_accuracy`, in percent; for pairs also `f1` of the class that sorts last.

    Args:
        data: The data set.
        how: Classifier and folds.
    """

    data: LabelledSet
    how: CrossValidation = field(default_factory=CrossValidation)

    @property
    def name(self) -> str:
        """Name of the data set."""
        return self.data.name

    def texts(self) -> Iterator[str]:
        """All texts of all parts."""
        yield from self.data.texts()

    def score(self, embeddings: Embeddings) -> TaskResult:
        """Train and test."""
        if self.data.dev is None:
            self.data.require_per_class(self.how.folds, f"cross-validation in {self.how.folds} folds")
        found, tested = self.predict(embeddings)
        metrics: dict[str, float | None] = {"accuracy": found.accuracy, "dev_accuracy": found.dev_accuracy}
        if tested.seconds is not None:
            last = len(self.data.classes) - 1
            metrics["f1"] = 100 * float(f1_score(self.data.indices(tested) == last, found.classes == last))
        return TaskResult(
            task=self.name,
            main="accuracy",
            metrics=metrics,
            rows=len(tested),
            data_sha256=self.data.sha256,
            details={
                "text": self.data.text,
                "classifier": self.how.classifier,
                "folds": None if self.data.dev is not None else self.how.folds,
                "penalties": list(found.penalties),
                "classes": len(self.data.classes),
            },
        )

    def predict(self, embeddings: Embeddings) -> tuple[Predictions, Labelled]:
        """Train, and return the predictions and the part that they are for."""
        data, bar = self.data, f"classify {self.name}"
        (x, y), *others = [
            part for _, each in data.parts() for part in [(features(embeddings, each), data.indices(each))]
        ]
        if data.test is None:
            return nested(x, y, self.how, bar), data.train
        if data.dev is None:
            return cross_validated(x, y, *others[0], self.how, bar), data.test
        return split(x, y, *others[0], *others[1], self.how, bar), data.test
