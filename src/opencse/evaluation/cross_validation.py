"""SentEval's three protocols for classifiers of frozen features, with its classifier or scikit-learn's.

`senteval` is SentEval's own logistic regression: Adam, early stopping, L2 penalty from a grid, with SentEval's folds,
seeds, order of rows and rounding. Its protocol trains a classifier for every fold and every penalty: 410 for one task.
Each step is a product so small that the call costs much more than the computation, so the classifiers of many folds and
of all penalties take their steps together, each with the batches, initial weights and stopping rule that it would have
alone. `sklearn` is a fast variant of this project, not a published protocol: scikit-learn's logistic regression, whose
C is chosen on one held-out tenth of the training rows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from torch import Tensor, nn

from opencse.foundation.errors import OpencseError
from opencse.foundation.progress import Phase

_BATCH = 64  # SentEval's rows per step
_FITS_TOGETHER = 20  # enough to hide the cost of a call, few enough for the cache of a core


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
    """Classifier, folds and training of a cross-validation; the defaults are SentEval's.

    Args:
        classifier: `senteval` or `sklearn`.
        folds: Number of folds, inner and outer.
        epochs_per_round: Epochs between two measurements of the development accuracy (`epoch_size`).
        patience: Total number of rounds without improvement, after which the next one ends the training (`tenacity`).
        max_epochs: No round starts after more epochs than this.
        learning_rate: Learning rate of Adam.
    """

    classifier: Classifier = "senteval"
    folds: int = 10
    epochs_per_round: int = 4
    patience: int = 5
    max_epochs: int = 200
    learning_rate: float = 1e-3

    def __post_init__(self) -> None:
        if self.classifier not in get_args(Classifier):
            known = ", ".join(get_args(Classifier))
            raise OpencseError(f"classifier {self.classifier!r} is unknown", f"Use one of {known}.")


@dataclass(frozen=True, kw_only=True, eq=False)
class Fit:
    """One set of training rows, on which one classifier for each penalty is trained.

    Args:
        train: Rows to train on.
        dev: Rows for early stopping.
        penalties: Factors of the L2 penalty, which is added to the gradient as `penalty * weights`.
        random: Generator of the row order of each epoch.
    """

    train: np.ndarray
    dev: np.ndarray
    penalties: Sequence[float]
    random: np.random.RandomState


@dataclass(frozen=True, kw_only=True, eq=False)
class Fitted:
    """The classifiers of one `Fit`.

    Attributes:
        accuracy: Best accuracy on the development rows, in [0, 1], (penalties,).
        weights: Weights of that round, (penalties, classes, d + 1); the last column is the bias.
    """

    accuracy: np.ndarray
    weights: np.ndarray

    def predict(self, x: np.ndarray, penalty: int = 0) -> np.ndarray:
        """Return the classes (n,) of features (n, d) by the classifier of one penalty, given by its index."""
        weights = self.weights[penalty]
        return np.argmax(np.asarray(x, dtype=np.float32) @ weights[:, :-1].T + weights[:, -1], axis=1)


def train_probes(data: Part, fits: Sequence[Fit], protocol: CrossValidation, bar: str | None = None) -> list[Fitted]:
    """Train softmax regressions with Adam and early stopping.

    Uses as many threads as PyTorch is set to. Memory: a float32 copy of the features.

    Args:
        data: Features and classes.
        fits: The fits, each with the same number of penalties.
        protocol: Settings of the training.
        bar: Label of a progress bar; None for no bar.

    Returns:
        One `Fitted` per fit, in order.
    """
    x, y = data
    classes = int(y.max()) + 1
    rows = _Rows(x, y, classes)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(_SEED)
        layer = nn.Linear(x.shape[1], classes)
    start = torch.cat([layer.weight, layer.bias[:, None]], dim=1).detach()  # (classes, d + 1)
    parts = list(_parts(fits))
    threads = torch.get_num_threads()
    results: list[Fitted | None] = [None] * len(fits)
    with Phase(bar or "", total=len(fits), unit="fits", show=bool(bar)) as phase:
        torch.set_num_threads(1)  # each thread its own program: see Embedder
        try:
            with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
                programs = pool.map(lambda part: _train_together(rows, start, [fits[i] for i in part], protocol), parts)
                for part, fitted in zip(parts, programs, strict=True):
                    for index, each in zip(part, fitted, strict=True):
                        results[index] = each
                    phase.update(len(part))
        finally:
            torch.set_num_threads(threads)
    return [each for each in results if each is not None]


class _Rows:
    """Features with a one for the bias, and classes; the last row is zero, so that it adds nothing to a gradient."""

    def __init__(self, x: np.ndarray, y: np.ndarray, classes: int) -> None:
        self.padding = len(x)
        features = np.zeros((len(x) + 1, x.shape[1] + 1), dtype=np.float32)
        features[:-1, :-1], features[:-1, -1] = x, 1
        self.features = torch.from_numpy(features)
        labels = np.full(len(x) + 1, -1, dtype=np.int64)
        labels[:-1] = y
        self.labels = torch.from_numpy(labels)
        self.one_hot = torch.from_numpy((labels[:, None] == np.arange(classes)).astype(np.float32))


def _parts(fits: Sequence[Fit]) -> Iterator[list[int]]:
    """Yield groups of fits with the same number of steps per epoch."""
    by_steps: dict[int, list[int]] = {}
    for index, fit in enumerate(fits):
        by_steps.setdefault(math.ceil(len(fit.train) / _BATCH), []).append(index)
    for members in by_steps.values():
        for start in range(0, len(members), _FITS_TOGETHER):
            yield members[start : start + _FITS_TOGETHER]


def _train_together(rows: _Rows, start: Tensor, fits: Sequence[Fit], protocol: CrossValidation) -> list[Fitted]:
    """Train the classifiers of some fits (G of them, with P penalties each) until all have stopped."""
    penalties = torch.tensor([list(fit.penalties) for fit in fits], dtype=torch.float32)  # (G, P)
    weights = start.expand(*penalties.shape, *start.shape).clone()  # (G, P, classes, d + 1)
    dev = _pad([fit.dev for fit in fits], rows.padding)
    best = torch.full(penalties.shape, -1, dtype=torch.int64)
    best_weights, misses, epochs = weights.clone(), torch.zeros_like(best), 0
    active = torch.ones_like(best, dtype=torch.bool)
    alive = list(range(len(fits)))  # fits with a classifier that is still training
    optimizer = torch.optim.Adam([weights], lr=protocol.learning_rate, fused=True)
    while alive and epochs <= protocol.max_epochs:
        for _ in range(protocol.epochs_per_round):
            _train_epoch(rows, weights, penalties[alive], [fits[i] for i in alive], optimizer)
        epochs += protocol.epochs_per_round
        correct = _correct(rows, weights, dev[alive])
        better = (correct > best[alive]) & active[alive]
        best[alive] = torch.where(better, correct, best[alive])
        best_weights[alive] = torch.where(better[..., None, None], weights, best_weights[alive])
        worse = ~better & active[alive]
        active[alive] &= ~(worse & (misses[alive] >= protocol.patience))
        misses[alive] += worse
        kept = [position for position, index in enumerate(alive) if active[index].any()]
        if len(kept) < len(alive):
            alive = [alive[position] for position in kept]
            state = {key: value[kept] if value.ndim else value for key, value in optimizer.state[weights].items()}
            weights = weights[kept]
            optimizer = torch.optim.Adam([weights], lr=protocol.learning_rate, fused=True)
            optimizer.state[weights] = state
    accuracy = best.numpy() / np.array([[len(fit.dev)] for fit in fits])
    return [
        Fitted(accuracy=each, weights=kept.numpy()) for each, kept in zip(accuracy, best_weights.unbind(), strict=True)
    ]


def _train_epoch(
    rows: _Rows,
    weights: Tensor,
    penalties: Tensor,
    fits: Sequence[Fit],
    optimizer: torch.optim.Optimizer,
) -> None:
    """Train every fit for one epoch, each in its own row order."""
    groups, grid, classes, width = weights.shape
    order = _pad([fit.train[fit.random.permutation(len(fit.train))] for fit in fits], rows.padding)
    for batch in order.split(_BATCH, dim=1):
        index, size = batch.reshape(-1), batch.shape[1]
        x = rows.features.index_select(0, index).view(groups, size, width)
        target = rows.one_hot.index_select(0, index).view(groups, 1, size, classes).transpose(2, 3)
        logits = torch.bmm(weights.view(groups, -1, width), x.transpose(1, 2)).view(groups, grid, classes, size)
        # Gradient of the summed cross entropy with respect to the logits.
        error = torch.softmax(logits, dim=2).sub_(target)
        gradient = torch.bmm(error.view(groups, -1, size), x).view_as(weights)
        real = (batch != rows.padding).sum(dim=1).view(groups, 1, 1, 1)
        weights.grad = gradient.div_(real).addcmul_(weights, penalties[..., None, None])
        optimizer.step()


def _correct(rows: _Rows, weights: Tensor, dev: Tensor) -> Tensor:
    """Return the number of correct development rows (G, n) of each classifier, (G, P)."""
    groups, grid, classes, width = weights.shape
    counts = torch.zeros(groups, grid, dtype=torch.int64)
    for part in dev.split(1024, dim=1):
        x = rows.features.index_select(0, part.reshape(-1)).view(groups, -1, width)
        logits = torch.bmm(weights.view(groups, -1, width), x.transpose(1, 2)).view(groups, grid, classes, -1)
        counts += (logits.argmax(dim=2) == rows.labels[part][:, None]).sum(dim=2)
    return counts


def _pad(lists: Sequence[np.ndarray], padding: int) -> Tensor:
    """Return rows of indices (G, longest), filled with `padding`."""
    out = np.full((len(lists), max(map(len, lists))), padding, dtype=np.int64)
    for row, indices in zip(out, lists, strict=True):
        row[: len(indices)] = indices
    return torch.from_numpy(out)


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
        fitted = train_probes(data, inner, protocol, progress)
        best = [_best(fitted[start : start + protocol.folds]) for start in range(0, len(fitted), protocol.folds)]
        penalties, dev = [PENALTIES[index] for index, _ in best], [score for _, score in best]
        last = [_held_out(train, penalty) for (train, _), penalty in zip(outer, penalties, strict=True)]
        for (_, test), each in zip(outer, train_probes(data, last, protocol, progress), strict=True):
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
        train_probes(train, [_fit(a, b, PENALTIES) for a, b in _folds(train[1], protocol.folds)], protocol, progress)
    )
    (last,) = train_probes(train, [_held_out(np.arange(len(train[1])), PENALTIES[index])], protocol)
    return _tested(test, last.predict(test[0]), PENALTIES[index], dev)


def train_dev_test(
    train: Part, dev: Part, test: Part, protocol: CrossValidation, progress: str | None = None
) -> Predictions:
    """Choose the penalty and the stopping time on development rows, then test (SST2)."""
    if protocol.classifier == "sklearn":
        return _tested(test, *_by_sklearn(train, test[0], dev))
    x, y = (np.concatenate(columns) for columns in zip(train, dev, strict=True))
    rows, count = np.arange(len(y)), len(train[1])
    (fitted,) = train_probes((x, y), [_fit(rows[:count], rows[count:], PENALTIES)], protocol, progress)
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
