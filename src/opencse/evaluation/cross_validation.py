"""From features to predictions: SentEval's three protocols, with its classifier or scikit-learn's.

`senteval` is SentEval's own logistic regression: Adam, early stopping, L2 penalty from a grid; folds, seeds, order of
rows and rounding are its, too. `sklearn` is this project's fast variant and no published protocol: scikit-learn's
logistic regression, whose C is chosen on a single held-out tenth of the training rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal, get_args

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from opencse.errors import OpencseError
from opencse.evaluation.linear_probes import Fit, Fitted, Training, train_probes

Classifier = Literal["senteval", "sklearn"]
PENALTIES = tuple(10.0**power for power in range(-5, -1))
"""SentEval's grid of L2 penalties for its own classifier."""
STRENGTHS = (0.25, 1.0, 4.0, 16.0, 64.0)
"""Values of C for scikit-learn's."""

_SEED = 1111  # of everything in SentEval
_HELD_OUT = 0.05  # share of the rows that say when to stop, where no development rows are given


@dataclass(frozen=True, kw_only=True)
class CrossValidation:
    """How to classify.

    Args:
        classifier: `senteval` or `sklearn`.
        folds: Of cross-validation, inner and outer.
        training: How SentEval's classifier is trained.
    """

    classifier: Classifier = "senteval"
    folds: int = 10
    training: Training = field(default_factory=Training)

    def __post_init__(self) -> None:
        if self.classifier not in get_args(Classifier):
            known = ", ".join(get_args(Classifier))
            raise OpencseError(f"classifier {self.classifier!r} is unknown", f"Use one of {known}.")


@dataclass(frozen=True, kw_only=True, eq=False)
class Predictions:
    """Accuracy of a cross-validation.

    Attributes:
        classes: (n,) predicted classes, for every row that was tested.
        accuracy: Percent of them that are right. SentEval's nested protocol rounds each fold's and takes their mean.
        dev_accuracy: Percent, of the chosen penalties on development rows.
        penalties: The chosen ones (C for scikit-learn).
    """

    classes: np.ndarray
    accuracy: float
    dev_accuracy: float
    penalties: tuple[float, ...]


def nested(x: np.ndarray, y: np.ndarray, how: CrossValidation, progress: str | None = None) -> Predictions:
    """Cross-validation in cross-validation, for a task that has no test part (MR, CR, SUBJ, MPQA).

    Args:
        x: Features (n, d).
        y: Classes (n,), integers from 0.
        how: Classifier and folds.
        progress: Label of a progress bar, or None.
    """
    outer = list(_folds(y, how.folds))
    predicted, scores = np.zeros_like(y), []
    if how.classifier == "sklearn":
        chosen = [_by_sklearn(x[train], y[train], x[test]) for train, test in outer]
        for (_, test), (classes, _, _) in zip(outer, chosen, strict=True):
            predicted[test] = classes
        penalties, dev = [c for _, c, _ in chosen], [score for _, _, score in chosen]
    else:
        inner = [
            _fit(train[a], train[b], PENALTIES) for train, _ in outer for a, b in _folds(y[train], how.folds)
        ]  # all at once: folds x folds x penalties
        fitted = _train(x, y, inner, how, progress)
        best = [_best(fitted[start : start + how.folds]) for start in range(0, len(fitted), how.folds)]
        penalties, dev = [PENALTIES[place] for place, _ in best], [score for _, score in best]
        last = [_held_out(train, penalty) for (train, _), penalty in zip(outer, penalties, strict=True)]
        for (_, test), each in zip(outer, _train(x, y, last, how, progress), strict=True):
            predicted[test] = each.predict(x[test])
    scores = [round(_percent(predicted[test], y[test]), 2) for _, test in outer]
    return Predictions(
        classes=predicted,
        accuracy=float(np.mean(scores)),
        dev_accuracy=float(np.mean(dev)),
        penalties=tuple(penalties),
    )


def cross_validated(
    x: np.ndarray,
    y: np.ndarray,
    x_test: np.ndarray,
    y_test: np.ndarray,
    how: CrossValidation,
    progress: str | None = None,
) -> Predictions:
    """Choose the penalty by cross-validation on the training part, then train on all of it (TREC, MRPC)."""
    if how.classifier == "sklearn":
        classes, penalty, dev = _by_sklearn(x, y, x_test)
    else:
        fits = [_fit(a, b, PENALTIES) for a, b in _folds(y, how.folds)]
        place, dev = _best(_train(x, y, fits, how, progress))
        penalty = PENALTIES[place]
        (last,) = _train(x, y, [_held_out(np.arange(len(y)), penalty)], how)
        classes = last.predict(x_test)
    return _tested(classes, y_test, dev, penalty)


def split(
    x: np.ndarray,
    y: np.ndarray,
    x_dev: np.ndarray,
    y_dev: np.ndarray,
    x_test: np.ndarray,
    y_test: np.ndarray,
    how: CrossValidation,
    progress: str | None = None,
) -> Predictions:
    """Choose the penalty, and the time to stop, on development rows (SST2)."""
    if how.classifier == "sklearn":
        classes, penalty, dev = _by_sklearn(x, y, x_test, (x_dev, y_dev))
    else:
        rows = np.arange(len(y) + len(y_dev))
        fit = _fit(rows[: len(y)], rows[len(y) :], PENALTIES)
        (fitted,) = _train(np.concatenate([x, x_dev]), np.concatenate([y, y_dev]), [fit], how, progress)
        place, dev = _best([fitted])
        penalty, classes = PENALTIES[place], fitted.predict(x_test, place)  # training once more would give the same
    return _tested(classes, y_test, dev, penalty)


def _folds(y: np.ndarray, count: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    return StratifiedKFold(n_splits=count, shuffle=True, random_state=_SEED).split(np.zeros((len(y), 0)), y)


def _fit(train: np.ndarray, dev: np.ndarray, penalties: tuple[float, ...]) -> Fit:
    return Fit(train=train, dev=dev, penalties=penalties, random=np.random.RandomState(_SEED))


def _held_out(rows: np.ndarray, penalty: float) -> Fit:
    """A fit to all rows but a few, drawn by chance, that say when to stop."""
    random = np.random.RandomState(_SEED)
    order = random.permutation(len(rows))
    cut = max(1, int(_HELD_OUT * len(rows)))
    return Fit(train=rows[order[cut:]], dev=rows[order[:cut]], penalties=(penalty,), random=random)


def _train(x: np.ndarray, y: np.ndarray, fits: list[Fit], how: CrossValidation, bar: str | None = None) -> list[Fitted]:
    return train_probes(x, y, int(y.max()) + 1, fits, how.training, progress=bar)


def _best(fitted: list[Fitted]) -> tuple[int, float]:
    """Place and score of the penalty with the highest mean accuracy, rounded as SentEval does; the first of equals."""
    scores = [round(100 * float(mean), 2) for mean in np.mean([each.accuracy for each in fitted], axis=0)]
    place = int(np.argmax(scores))
    return place, scores[place]


def _by_sklearn(
    x: np.ndarray, y: np.ndarray, x_test: np.ndarray, dev: tuple[np.ndarray, np.ndarray] | None = None
) -> tuple[np.ndarray, float, float]:
    """Predicted classes, chosen C and its score on the development rows."""
    train, rest = (np.arange(len(y)), None) if dev is not None else next(_folds(y, 10))
    x_dev, y_dev = dev if dev is not None else (x[rest], y[rest])
    scores = [_percent(_logistic(c).fit(x[train], y[train]).predict(x_dev), y_dev) for c in STRENGTHS]
    best = int(np.argmax(scores))
    return _logistic(STRENGTHS[best]).fit(x, y).predict(x_test), STRENGTHS[best], scores[best]


def _logistic(strength: float) -> LogisticRegression:
    return LogisticRegression(C=strength, max_iter=1000)


def _percent(predicted: np.ndarray, y: np.ndarray) -> float:
    return 100 * float((predicted == y).mean())


def _tested(classes: np.ndarray, y: np.ndarray, dev: float, penalty: float) -> Predictions:
    return Predictions(classes=classes, accuracy=_percent(classes, y), dev_accuracy=dev, penalties=(penalty,))
