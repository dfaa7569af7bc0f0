"""SentEval's protocols for its classifier of frozen features, a logistic regression.

Adam, early stopping, L2 penalty from a grid, with SentEval's folds, seeds, order of rows and
rounding. The protocol trains a classifier for every fold and every penalty: 410 for one task. Each
step is a product so small that the call costs much more than the computation, so the classifiers of
many folds and of all penalties take their steps together, each with the batches, initial weights
and stopping rule that it would have alone.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from sklearn.model_selection import StratifiedKFold
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from opencse.foundation.chunks import chunks
from opencse.foundation.progress import Phase
from opencse.foundation.workers import one_thread

# SentEval's rows per step.
_BATCH = 64
# Enough to hide the cost of a call, few enough for the cache of a core.
_FITS_TOGETHER = 20

Part = tuple[np.ndarray, np.ndarray]
"""Features (n, d) of the texts of a part, and their classes (n,), integers from 0."""
PENALTIES = tuple(10.0**power for power in range(-5, -1))
"""SentEval's grid of L2 penalties."""

# SentEval's seed and learning rate.
_SEED = 1111
_LEARNING_RATE = 1e-3
# Share of the rows for early stopping, if there are no development rows.
_HELD_OUT = 0.05


@dataclass(frozen=True, kw_only=True)
class CrossValidation:
    """Folds and training of a cross-validation; the defaults are SentEval's.

    Args:
        folds: Number of folds, inner and outer.
        epochs_per_round: Epochs between two measurements of the development accuracy
            (`epoch_size`).
        patience: Total number of rounds without improvement, after which the next one ends the
            training (`tenacity`).
        max_epochs: No round starts after more epochs than this.
    """

    folds: int = 10
    epochs_per_round: int = 4
    patience: int = 5
    max_epochs: int = 200


class Fit(NamedTuple):
    """Rows to train one classifier for each L2 penalty on, and rows for early stopping.

    `random` orders the rows of each epoch; `penalty * weights` is added to the gradient.
    """

    train: np.ndarray
    dev: np.ndarray
    penalties: Sequence[float]
    random: np.random.RandomState


class Fitted(NamedTuple):
    """The classifiers of one `Fit`: best development accuracy, in [0, 1], and that round's weights.

    Shapes (penalties,) and (penalties, classes, d + 1), the last column of which is the bias.
    """

    accuracy: np.ndarray
    weights: np.ndarray

    def predict(self, x: np.ndarray, penalty: int = 0) -> np.ndarray:
        """Return the classes (n,) of features (n, d) by the classifier of the penalty's index."""
        weights = self.weights[penalty]
        logits = np.asarray(x, dtype=np.float32) @ weights[:, :-1].T + weights[:, -1]
        return np.argmax(logits, axis=1)


def train_classifiers(
    data: Part, fits: Sequence[Fit], protocol: CrossValidation, bar: str | None = None
) -> list[Fitted]:
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
    groups = _groups_of_equal_steps(fits)

    def train(group: list[int]) -> list[Fitted]:
        return _train_together(rows, start, [fits[i] for i in group], protocol)

    fitted: dict[int, Fitted] = {}
    # A core each, as in `Embedder`.
    threads = torch.get_num_threads()
    pool = ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,))
    phase = Phase(bar or "", total=len(fits), unit="fits", show=bool(bar))
    with phase, one_thread(), pool:
        for group, results in zip(groups, pool.map(train, groups), strict=True):
            fitted |= zip(group, results, strict=True)
            phase.update(len(group))
    return [fitted[index] for index in range(len(fits))]


def _groups_of_equal_steps(fits: Sequence[Fit]) -> list[list[int]]:
    """Return the numbers of the fits in small groups with the same number of steps per epoch."""
    by_steps: dict[int, list[int]] = {}
    for index, fit in enumerate(fits):
        steps = math.ceil(len(fit.train) / _BATCH)
        by_steps.setdefault(steps, []).append(index)
    groups: list[list[int]] = []
    for members in by_steps.values():
        groups += chunks(members, _FITS_TOGETHER)
    return groups


class _Rows:
    """Features with a one for the bias, and classes.

    The last row is zero, so that it adds nothing to a gradient.
    """

    def __init__(self, x: np.ndarray, y: np.ndarray, classes: int) -> None:
        self.padding = len(x)
        self.features = torch.zeros(len(x) + 1, x.shape[1] + 1)
        self.features[:-1, :-1] = torch.from_numpy(x)
        self.features[:-1, -1] = 1
        self.labels = torch.from_numpy(np.append(y, -1))
        self.one_hot = (self.labels[:, None] == torch.arange(classes)).float()


def _train_together(
    rows: _Rows, start: Tensor, fits: Sequence[Fit], protocol: CrossValidation
) -> list[Fitted]:
    """Train the classifiers of G fits, with P penalties each, until all have stopped."""
    penalties = torch.tensor([list(fit.penalties) for fit in fits], dtype=torch.float32)  # (G, P)
    weights = start.expand(*penalties.shape, *start.shape).clone()  # (G, P, classes, d + 1)
    dev = _pad([fit.dev for fit in fits], rows.padding)
    best = torch.full(penalties.shape, -1, dtype=torch.int64)
    best_weights = weights.clone()
    misses = torch.zeros_like(best)
    epochs = 0
    # The fits with a classifier that is still training.
    alive = list(range(len(fits)))
    optimizer = torch.optim.Adam([weights], lr=_LEARNING_RATE, fused=True)
    while alive and epochs <= protocol.max_epochs:
        for _ in range(protocol.epochs_per_round):
            _train_epoch(rows, weights, penalties[alive], [fits[i] for i in alive], optimizer)
        epochs += protocol.epochs_per_round
        correct = _correct(rows, weights, dev[alive])
        # A classifier with more misses has stopped.
        running = misses[alive] <= protocol.patience
        better = (correct > best[alive]) & running
        best[alive] = torch.where(better, correct, best[alive])
        best_weights[alive] = torch.where(better[..., None, None], weights, best_weights[alive])
        misses[alive] += ~better
        training = (misses[alive] <= protocol.patience).any(dim=1)
        if not training.all():
            alive = [i for i, trains in zip(alive, training.tolist(), strict=True) if trains]
            # The weights become another tensor, to which the optimizer's state moves.
            state = {}
            for key, value in optimizer.state[weights].items():
                state[key] = value[training] if value.ndim else value
            weights = weights[training]
            optimizer = torch.optim.Adam([weights], lr=_LEARNING_RATE, fused=True)
            optimizer.state[weights] = state
    results = []
    for fit, correct, chosen in zip(fits, best, best_weights, strict=True):
        results.append(
            Fitted(accuracy=correct.numpy() / len(fit.dev), weights=chosen.numpy()),
        )
    return results


def _train_epoch(
    rows: _Rows,
    weights: Tensor,
    penalties: Tensor,
    fits: Sequence[Fit],
    optimizer: torch.optim.Optimizer,
) -> None:
    """Train every fit for one epoch, each in its own row order."""
    groups, grid, classes, width = weights.shape
    shuffled = [fit.train[fit.random.permutation(len(fit.train))] for fit in fits]
    order = _pad(shuffled, rows.padding)
    for batch in order.split(_BATCH, dim=1):
        index = batch.reshape(-1)
        size = batch.shape[1]
        x = rows.features.index_select(0, index).view(groups, size, width)
        one_hot = rows.one_hot.index_select(0, index)
        target = one_hot.view(groups, 1, size, classes).transpose(2, 3)
        logits = torch.bmm(weights.view(groups, -1, width), x.transpose(1, 2))
        logits = logits.view(groups, grid, classes, size)
        # Gradient of the summed cross entropy with respect to the logits.
        error = torch.softmax(logits, dim=2).sub_(target)
        gradient = torch.bmm(error.view(groups, -1, size), x).view_as(weights)
        # The mean is over real rows; padding adds nothing to the sum.
        real = (batch != rows.padding).sum(dim=1).view(groups, 1, 1, 1)
        weights.grad = gradient.div_(real).addcmul_(weights, penalties[..., None, None])
        optimizer.step()


def _correct(rows: _Rows, weights: Tensor, dev: Tensor) -> Tensor:
    """Return the number of correct development rows (G, n) of each classifier, (G, P)."""
    groups, grid, classes, width = weights.shape
    counts = torch.zeros(groups, grid, dtype=torch.int64)
    for part in dev.split(1024, dim=1):
        x = rows.features.index_select(0, part.reshape(-1)).view(groups, -1, width)
        logits = torch.bmm(weights.view(groups, -1, width), x.transpose(1, 2))
        logits = logits.view(groups, grid, classes, -1)
        counts += (logits.argmax(dim=2) == rows.labels[part][:, None]).sum(dim=2)
    return counts


def _pad(lists: Sequence[np.ndarray], padding: int) -> Tensor:
    """Return rows of indices (G, longest), filled with `padding`."""
    tensors = [torch.from_numpy(indices) for indices in lists]
    return pad_sequence(tensors, batch_first=True, padding_value=padding)


class Predictions(NamedTuple):
    """Predicted classes (n,) of all tested rows, and accuracy in percent.

    SentEval's nested protocol rounds the accuracy of each fold and takes the mean. `dev_accuracy`
    is that of the chosen penalties on development rows.
    """

    classes: np.ndarray
    accuracy: float
    dev_accuracy: float
    penalties: tuple[float, ...]


def cross_validate(
    parts: Sequence[Part], protocol: CrossValidation, progress: str | None = None
) -> Predictions:
    """Choose the L2 penalty and predict the classes of the tested rows.

    The number of parts decides the protocol.

    Args:
        parts: One part is tested by nested cross-validation (MR, CR, SUBJ, MPQA). Of two, the
            penalty is chosen by cross-validation on the first, which is then trained on as a whole
            to test the second (TREC, MRPC). Of three, training, development and test part, the
            second chooses penalty and stopping time (SST2).
        protocol: Folds and training.
        progress: Label of a progress bar; None for no bar.
    """
    x = np.concatenate([features for features, _ in parts])
    y = np.concatenate([classes for _, classes in parts])
    ends = np.cumsum([len(classes) for _, classes in parts])
    first, *rest = np.split(np.arange(len(y)), ends[:-1])
    with_development = len(rest) == 2

    # Each test part with the rows that are trained on, and for each the folds of the penalty's
    # choice.
    if rest:
        outer = [(first, rest[-1])]
    else:
        outer = _folds(first, y, protocol.folds)
    inner = []
    for train, _ in outer:
        if with_development:
            inner.append([(first, rest[0])])
        else:
            inner.append(_folds(train, y, protocol.folds))

    # All folds of all folds are trained together.
    fits = []
    for folds in inner:
        for train, dev in folds:
            random = np.random.RandomState(_SEED)
            fits.append(Fit(train=train, dev=dev, penalties=PENALTIES, random=random))
    fitted = train_classifiers((x, y), fits, protocol, progress)
    best = []
    dev_scores = []
    count = len(inner[0])
    for start in range(0, len(fitted), count):
        index, score = _best(fitted[start : start + count])
        best.append(index)
        dev_scores.append(score)
    penalties = tuple(PENALTIES[index] for index in best)

    if with_development:
        # Another training would give the same classifier.
        predicted = [fitted[0].predict(x[rest[-1]], best[0])]
    else:
        last = []
        for (train, _), penalty in zip(outer, penalties, strict=True):
            last.append(_held_out(train, penalty))
        trained = train_classifiers((x, y), last, protocol, progress)
        predicted = []
        for (_, test), classifier in zip(outer, trained, strict=True):
            predicted.append(classifier.predict(x[test]))
    tested = [test for _, test in outer]
    return Predictions(
        classes=np.concatenate(predicted)[np.argsort(np.concatenate(tested))],
        accuracy=_accuracy(predicted, [y[test] for test in tested]),
        dev_accuracy=float(np.mean(dev_scores)),
        penalties=penalties,
    )


def _accuracy(predicted: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    """Return the accuracy in percent, over the folds if there are several."""
    scores = []
    for classes, right in zip(predicted, expected, strict=True):
        scores.append(100 * float((classes == right).mean()))
    if len(scores) == 1:
        return scores[0]
    # SentEval rounds the accuracy of each fold.
    return float(np.mean([round(score, 2) for score in scores]))


def _folds(rows: np.ndarray, y: np.ndarray, count: int) -> list[tuple[np.ndarray, np.ndarray]]:
    folds = StratifiedKFold(n_splits=count, shuffle=True, random_state=_SEED).split(rows, y[rows])
    return [(rows[train], rows[test]) for train, test in folds]


def _held_out(rows: np.ndarray, penalty: float) -> Fit:
    """Return a fit with a random sample of the rows held out for early stopping."""
    random = np.random.RandomState(_SEED)
    order = random.permutation(len(rows))
    cut = max(1, int(_HELD_OUT * len(rows)))
    return Fit(train=rows[order[cut:]], dev=rows[order[:cut]], penalties=(penalty,), random=random)


def _best(fitted: Sequence[Fitted]) -> tuple[int, float]:
    """Return index and score of the penalty with the best mean accuracy; the first of ties.

    Scores are rounded like SentEval's.
    """
    means = np.mean([fit.accuracy for fit in fitted], axis=0)
    scores = [round(100 * float(mean), 2) for mean in means]
    index = int(np.argmax(scores))
    return index, scores[index]
