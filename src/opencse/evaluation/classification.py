"""Classification: logistic regression (scikit-learn) on frozen vectors, on all training texts or a few per class."""

from __future__ import annotations

import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score

from opencse.evaluation.labelled import LabelledSet, features
from opencse.evaluation.task import TaskResult, TextEmbeddings
from opencse.foundation.errors import OpencseError

CLASSIFICATION_TASKS = ("Banking77", "Emotion", "CLINC150", "AmazonCounterfactual", "TweetSentiment")
"""Named tasks; any folder with a training and a test part is a task, too."""

EXAMPLES = {"AmazonCounterfactual": 32, "TweetSentiment": 32}
"""Training texts per class in `mteb`'s protocol, for tasks with another number than 8."""

_DRAWS, _SEED = 10, 42  # mteb's


@dataclass(frozen=True, kw_only=True, eq=False)
class ClassificationTask:
    """Accuracy of a classifier of the frozen vectors on the test part.

    Metrics, in percent: `accuracy` (the main one) and macro-averaged `f1` after training on all training texts;
    `few_shot_accuracy` and `few_shot_f1` by `mteb`'s protocol, the mean over ten draws of a few training texts per
    class. Only the latter are comparable with `mteb`'s tables.

    Args:
        data: The data set, with a test part.

    Raises:
        OpencseError: The data set has no test part.
    """

    data: LabelledSet

    def __post_init__(self) -> None:
        if self.data.test is None:
            raise OpencseError(f"{self.data.name} has no test part", "Add a file test.tsv (or .csv, .jsonl) to it.")

    @property
    def name(self) -> str:
        """Name of the data set."""
        return self.data.name

    def texts(self) -> Iterator[str]:
        """Yield training and test texts."""
        for part in (self.data.train, self.data.test):
            yield from part or ()

    def score(self, embeddings: TextEmbeddings) -> TaskResult:
        """Train the classifiers and return their scores on the test part."""
        data, test = self.data, self.data.test
        assert test is not None
        x, x_test = features(embeddings, data.train), features(embeddings, test)
        y, y_test = data.indices(data.train), data.indices(test)
        examples = EXAMPLES.get(self.name, 8)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # it is mteb's protocol to stop after 100 iterations
            few_shot = [_scores(x[rows], y[rows], x_test, y_test) for rows in few_shot_draws(y.tolist(), examples)]
        accuracy, f1 = _scores(x, y, x_test, y_test, iterations=1000)
        few_accuracy, few_f1 = np.mean(few_shot, axis=0).tolist()
        return TaskResult(
            task=self.name,
            main="accuracy",
            metrics={"accuracy": accuracy, "f1": f1, "few_shot_accuracy": few_accuracy, "few_shot_f1": few_f1},
            rows=len(test),
            data_sha256=data.sha256,
            details={
                "text": data.text,
                "classifier": "scikit-learn logistic regression, C = 1",
                "examples_per_class": examples,
                "classes": len(data.classes),
                "training_rows": len(data.train),
            },
        )


def few_shot_draws(labels: Sequence[int], examples: int) -> list[list[int]]:
    """Return the rows of ten training sets with `examples` rows of each class, sampled as in `mteb`.

    `mteb` shuffles the result of the previous shuffle, each time with the same seed.
    """
    order, draws = list(range(len(labels))), []
    for _ in range(_DRAWS):
        np.random.RandomState(_SEED).shuffle(order)
        taken: dict[int, int] = defaultdict(int)
        rows = []
        for row in order:
            if taken[labels[row]] < examples:
                taken[labels[row]] += 1
                rows.append(row)
        draws.append(rows)
    return draws


def _scores(
    x: np.ndarray, y: np.ndarray, x_test: np.ndarray, y_test: np.ndarray, iterations: int = 100
) -> tuple[float, float]:
    """Return the accuracy and macro-averaged F1, in percent."""
    predicted = LogisticRegression(max_iter=iterations).fit(x, y).predict(x_test)
    return 100 * float((predicted == y_test).mean()), 100 * float(f1_score(y_test, predicted, average="macro"))
