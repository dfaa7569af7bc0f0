"""SentEval's three protocols for classifiers of frozen features, with its classifier or scikit-learn's.

`senteval` is SentEval's own logistic regression: Adam, early stopping, L2 penalty from a grid, with SentEval's folds,
seeds, order of rows and rounding. `sklearn` is a fast variant of this project, not a published protocol: scikit-learn's
logistic regression, whose C is chosen on one held-out tenth of the training rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from opencse.evaluation.linear_probes import ClassifierTraining, Fit, Fitted, train_probes
from opencse.foundation.errors import OpencseError

Classifier = Literal["senteval", "sklearn"]
Part = tuple[np.ndarray, np.ndarray]
"""Features (n, d) of the texts of a part, and their classes (n,), integers from 0."""
PENALTIES = tuple(10.0**power for power in range(-5, -1))
"""SentEval's grid of L2 penalties for its own classifier."""
STRENGTHS = (0.25, 1.0, 4.0, 16.0, 64.0)
"""Values of C for scikit-learn's."""

_SEED = 1111  # SentEval's
_HELD_OUT = 0.05  # share of the rows for early stopping, without development rows


@dataclass(frozen=True, kw_only=True)
class CrossValidation:
    """Classifier and folds of a cross-validation.

    Args:
        classifier: `senteval` or `sklearn`.
        folds: Number of folds, inner and outer.
        training: ClassifierTraining settings of SentEval's classifier.
    """

    classifier: Classifier = "senteval"
    folds: int = 10
    training: ClassifierTraining = field(default_factory=ClassifierTraining)

    def __post_init__(self) -> None:
        if self.classifier not in get_args(Classifier):
            known = ", ".join(get_args(Classifier))
            raise OpencseError(f"classifier {self.classifier!r} is unknown", f"Use one of {known}.")


@dataclass(frozen=True, kw_only=True, eq=False)
class Predictions:
    """Predictions and accuracy of a protocol.

    Attributes:
        classes: Predicted classes (n,) of all tested rows.
        accuracy: Accuracy in percent. SentEval's nested protocol rounds that of each fold and takes the mean.
        dev_accuracy: Accuracy in percent of the chosen penalties on development rows.
        penalties: The chosen penalties (C for scikit-learn).
    """

    classes: np.ndarray
    accuracy: float
    dev_accuracy: float
    penalties: tuple[float, ...]


def nested_cross_validation(data: Part, protocol: CrossValidation, progress: str | None = None) -> Predictions:
    """Evaluate by nested cross-validation a task without a test part (MR, CR, SUBJ, MPQA).

    Args:
        data: The only part.
        protocol: Classifier and folds.
        progress: Label of a progress bar; None for no bar.
    """
    x, y = data
    outer = list(_folds(y, protocol.folds))
    predicted = np.zeros_like(y)
    if protocol.classifier == "sklearn":
        chosen = [_by_sklearn((x[train], y[train]), x[test]) for train, test in outer]
        for (_, test), (classes, _, _) in zip(outer, chosen, strict=True):
            predicted[test] = classes
        penalties, dev = [c for _, c, _ in chosen], [score for _, _, score in chosen]
    else:
        inner = [
            _fit(train[a], train[b], PENALTIES) for train, _ in outer for a, b in _folds(y[train], protocol.folds)
        ]  # folds x folds x penalties together
        fitted = _train(data, inner, protocol, progress)
        best = [_best(fitted[start : start + protocol.folds]) for start in range(0, len(fitted), protocol.folds)]
        penalties, dev = [PENALTIES[index] for index, _ in best], [score for _, score in best]
        last = [_held_out(train, penalty) for (train, _), penalty in zip(outer, penalties, strict=True)]
        for (_, test), each in zip(outer, _train(data, last, protocol, progress), strict=True):
            predicted[test] = each.predict(x[test])
    scores = [round(_percent(predicted[test], y[test]), 2) for _, test in outer]
    return Predictions(
        classes=predicted,
        accuracy=float(np.mean(scores)),
        dev_accuracy=float(np.mean(dev)),
        penalties=tuple(penalties),
    )


def cross_validation(train: Part, test: Part, protocol: CrossValidation, progress: str | None = None) -> Predictions:
    """Choose the penalty by cross-validation on the training part, then train on all of it and test (TREC, MRPC)."""
    if protocol.classifier == "sklearn":
        return _tested(test, *_by_sklearn(train, test[0]))
    index, dev = _best(
        _train(train, [_fit(a, b, PENALTIES) for a, b in _folds(train[1], protocol.folds)], protocol, progress)
    )
    (last,) = _train(train, [_held_out(np.arange(len(train[1])), PENALTIES[index])], protocol)
    return _tested(test, last.predict(test[0]), PENALTIES[index], dev)


def train_dev_test(
    train: Part, dev: Part, test: Part, protocol: CrossValidation, progress: str | None = None
) -> Predictions:
    """Choose the penalty and the stopping time on development rows, then test (SST2)."""
    if protocol.classifier == "sklearn":
        return _tested(test, *_by_sklearn(train, test[0], dev))
    x, y = (np.concatenate(columns) for columns in zip(train, dev, strict=True))
    rows, count = np.arange(len(y)), len(train[1])
    (fitted,) = _train((x, y), [_fit(rows[:count], rows[count:], PENALTIES)], protocol, progress)
    index, score = _best([fitted])
    return _tested(test, fitted.predict(test[0], index), PENALTIES[index], score)  # a second training would be equal


def _folds(y: np.ndarray, count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    return StratifiedKFold(n_splits=count, shuffle=True, random_state=_SEED).split(np.zeros((len(y), 0)), y)


def _fit(train: np.ndarray, dev: np.ndarray, penalties: tuple[float, ...]) -> Fit:
    return Fit(train=train, dev=dev, penalties=penalties, random=np.random.RandomState(_SEED))


def _held_out(rows: np.ndarray, penalty: float) -> Fit:
    """Return a fit with a random sample of the rows held out for early stopping."""
    random = np.random.RandomState(_SEED)
    order = random.permutation(len(rows))
    cut = max(1, int(_HELD_OUT * len(rows)))
    return Fit(train=rows[order[cut:]], dev=rows[order[:cut]], penalties=(penalty,), random=random)


def _train(data: Part, fits: list[Fit], protocol: CrossValidation, bar: str | None = None) -> list[Fitted]:
    return train_probes(*data, int(data[1].max()) + 1, fits, protocol.training, progress=bar)


def _best(fitted: list[Fitted]) -> tuple[int, float]:
    """Return index and score of the penalty with the best mean accuracy (rounded like SentEval); of ties, the first."""
    scores = [round(100 * float(mean), 2) for mean in np.mean([each.accuracy for each in fitted], axis=0)]
    index = int(np.argmax(scores))
    return index, scores[index]


def _by_sklearn(data: Part, x_test: np.ndarray, dev: Part | None = None) -> tuple[np.ndarray, float, float]:
    """Return the predicted classes, chosen C and its score on the development rows."""
    (x, y), train = data, data
    if dev is None:
        rows, rest = next(_folds(y, 10))
        train, dev = (x[rows], y[rows]), (x[rest], y[rest])
    scores = [_percent(_logistic(c).fit(*train).predict(dev[0]), dev[1]) for c in STRENGTHS]
    best = int(np.argmax(scores))
    return _logistic(STRENGTHS[best]).fit(x, y).predict(x_test), STRENGTHS[best], scores[best]


def _logistic(strength: float) -> LogisticRegression:
    return LogisticRegression(C=strength, max_iter=1000)


def _percent(predicted: np.ndarray, y: np.ndarray) -> float:
    return 100 * float((predicted == y).mean())


def _tested(test: Part, classes: np.ndarray, penalty: float, dev: float) -> Predictions:
    return Predictions(classes=classes, accuracy=_percent(classes, test[1]), dev_accuracy=dev, penalties=(penalty,))
