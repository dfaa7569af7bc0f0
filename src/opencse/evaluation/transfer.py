"""Transfer: a logistic regression on frozen sentence vectors, by SentEval's protocol (Conneau and Kiela 2018)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from sklearn.metrics import f1_score

from opencse.evaluation.cross_validation import (
    CrossValidation,
    Predictions,
    cross_validation,
    nested_cross_validation,
    train_dev_test,
)
from opencse.evaluation.labelled import LabelledSet, LabelledTexts, features
from opencse.evaluation.task import TaskResult, TextEmbeddings

TRANSFER_TASKS = ("MR", "CR", "SUBJ", "MPQA", "SST2", "TREC", "MRPC")
"""The seven tasks, in the order of the papers' tables."""


@dataclass(frozen=True, kw_only=True, eq=False)
class TransferTask:
    """Accuracy of a linear classifier of the frozen vectors.

    The parts of the data decide the protocol: with a training part only, nested cross-validation; with training and
    test, cross-validation on the training part; with a development part too, a single training. A pair (u, v) has the
    features (|u - v|, u * v).

    Metrics: `accuracy` (the main one) and `dev_accuracy`, in percent; for pairs also `f1` of the class that sorts last.

    Args:
        data: The data set.
        protocol: Classifier and folds.
    """

    data: LabelledSet
    protocol: CrossValidation = field(default_factory=CrossValidation)

    @property
    def name(self) -> str:
        """Name of the data set."""
        return self.data.name

    def texts(self) -> Iterator[str]:
        """Yield all texts of all parts."""
        yield from self.data.texts()

    def score(self, embeddings: TextEmbeddings) -> TaskResult:
        """Train the classifiers, and return their scores on the test rows."""
        if self.data.dev is None:
            self.data.require_per_class(self.protocol.folds, f"cross-validation in {self.protocol.folds} folds")
        predictions, tested = self.predict(embeddings)
        metrics: dict[str, float | None] = {"accuracy": predictions.accuracy, "dev_accuracy": predictions.dev_accuracy}
        if tested.seconds is not None:
            last = len(self.data.classes) - 1
            metrics["f1"] = 100 * float(f1_score(self.data.indices(tested) == last, predictions.classes == last))
        return TaskResult(
            task=self.name,
            main="accuracy",
            metrics=metrics,
            rows=len(tested),
            data_sha256=self.data.sha256,
            details={
                "text": self.data.text,
                "classifier": self.protocol.classifier,
                "folds": None if self.data.dev is not None else self.protocol.folds,
                "penalties": list(predictions.penalties),
                "classes": len(self.data.classes),
            },
        )

    def predict(self, embeddings: TextEmbeddings) -> tuple[Predictions, LabelledTexts]:
        """Train, and return the predictions and the part that they belong to."""
        data, bar = self.data, f"classify {self.name}"
        train, *others = [(features(embeddings, part), data.indices(part)) for _, part in data.parts()]
        if data.test is None:
            return nested_cross_validation(train, self.protocol, bar), data.train
        if data.dev is None:
            return cross_validation(train, others[0], self.protocol, bar), data.test
        return train_dev_test(train, others[0], others[1], self.protocol, bar), data.test
