"""Many small logistic regressions trained as one tensor program.

SentEval's protocol trains a classifier for every fold and every penalty: 410 for one task. Each step is a product so
small that the call costs much more than the computation. Here the classifiers of many folds and of all penalties take
their steps together; those of one fold share the rows of a batch. Batches, initial weights and stopping rule of each
classifier are the same as if it were trained alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from opencse.foundation.progress import Phase

_FITS_TOGETHER = 20  # enough to hide the cost of a call, few enough for the cache of a core


@dataclass(frozen=True, kw_only=True)
class ClassifierTraining:
    """Training settings of a classifier; the defaults are SentEval's.

    Args:
        batch_size: Rows per step.
        epochs_per_round: Epochs between two measurements of the development accuracy (`epoch_size`).
        patience: Total number of rounds without improvement, after which the next one ends the training (`tenacity`).
        max_epochs: No round starts after more epochs than this.
        learning_rate: Learning rate of Adam.
        seed: Seed of the initial weights.
    """

    batch_size: int = 64
    epochs_per_round: int = 4
    patience: int = 5
    max_epochs: int = 200
    learning_rate: float = 1e-3
    seed: int = 1111


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


def train_probes(
    x: np.ndarray,
    y: np.ndarray,
    classes: int,
    fits: Sequence[Fit],
    training: ClassifierTraining | None = None,
    *,
    progress: str | None = None,
) -> list[Fitted]:
    """Train softmax regressions with Adam and early stopping.

    Uses as many threads as PyTorch is set to. Memory: a float32 copy of `x`.

    Args:
        x: Features (n, d).
        y: Classes (n,), integers from 0.
        classes: Number of classes.
        fits: The fits, each with the same number of penalties.
        training: Training settings.
        progress: Label of a progress bar, or None for no bar.

    Returns:
        One `Fitted` per fit, in order.
    """
    training = training or ClassifierTraining()
    rows = _Rows(x, y, classes)
    start = _initial_weights(x.shape[1], classes, training.seed)
    parts = list(_parts(fits, training.batch_size))
    threads = torch.get_num_threads()
    results: list[Fitted | None] = [None] * len(fits)
    with Phase(progress or "", total=len(fits), unit="fits", show=bool(progress)) as phase:
        torch.set_num_threads(1)  # each thread its own program: see Embedder
        try:
            with ThreadPoolExecutor(threads, initializer=torch.set_num_threads, initargs=(1,)) as pool:
                programs = pool.map(lambda part: _train_together(rows, start, [fits[i] for i in part], training), parts)
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


def _initial_weights(width: int, classes: int, seed: int) -> Tensor:
    """Return weights and bias (classes, d + 1) as `nn.Linear` draws them from this seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        layer = nn.Linear(width, classes)
    return torch.cat([layer.weight, layer.bias[:, None]], dim=1).detach()


def _parts(fits: Sequence[Fit], batch_size: int) -> Iterator[list[int]]:
    """Yield groups of fits with the same number of steps per epoch."""
    by_steps: dict[int, list[int]] = {}
    for index, fit in enumerate(fits):
        by_steps.setdefault(math.ceil(len(fit.train) / batch_size), []).append(index)
    for members in by_steps.values():
        for start in range(0, len(members), _FITS_TOGETHER):
            yield members[start : start + _FITS_TOGETHER]


def _train_together(rows: _Rows, start: Tensor, fits: Sequence[Fit], training: ClassifierTraining) -> list[Fitted]:
    """Train the classifiers of some fits (G of them, with P penalties each) until all have stopped."""
    penalties = torch.tensor([list(fit.penalties) for fit in fits], dtype=torch.float32)  # (G, P)
    weights = start.expand(*penalties.shape, *start.shape).clone()  # (G, P, classes, d + 1)
    dev = _pad([fit.dev for fit in fits], rows.padding)
    best = torch.full(penalties.shape, -1, dtype=torch.int64)
    best_weights, misses, epochs = weights.clone(), torch.zeros_like(best), 0
    active = torch.ones_like(best, dtype=torch.bool)
    alive = list(range(len(fits)))  # fits with a classifier that is still training
    optimizer = torch.optim.Adam([weights], lr=training.learning_rate, fused=True)
    while alive and epochs <= training.max_epochs:
        for _ in range(training.epochs_per_round):
            _train_epoch(rows, weights, penalties[alive], [fits[i] for i in alive], training.batch_size, optimizer)
        epochs += training.epochs_per_round
        correct = _correct(rows, weights, dev[alive])
        better = (correct > best[alive]) & active[alive]
        best[alive] = torch.where(better, correct, best[alive])
        best_weights[alive] = torch.where(better[..., None, None], weights, best_weights[alive])
        worse = ~better & active[alive]
        active[alive] &= ~(worse & (misses[alive] >= training.patience))
        misses[alive] += worse
        kept = [position for position, index in enumerate(alive) if active[index].any()]
        if len(kept) < len(alive):
            alive = [alive[position] for position in kept]
            state = {key: value[kept] if value.ndim else value for key, value in optimizer.state[weights].items()}
            weights = weights[kept]
            optimizer = torch.optim.Adam([weights], lr=training.learning_rate, fused=True)
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
    batch_size: int,
    optimizer: torch.optim.Optimizer,
) -> None:
    """Train every fit for one epoch, each in its own row order."""
    groups, grid, classes, width = weights.shape
    order = _pad([fit.train[fit.random.permutation(len(fit.train))] for fit in fits], rows.padding)
    for batch in order.split(batch_size, dim=1):
        index, size = batch.reshape(-1), batch.shape[1]
        x = rows.features.index_select(0, index).view(groups, size, width)
        target = rows.one_hot.index_select(0, index).view(groups, 1, size, classes).transpose(2, 3)
        logits = torch.bmm(weights.view(groups, -1, width), x.transpose(1, 2)).view(groups, grid, classes, size)
        error = torch.softmax(logits, dim=2).sub_(
            target
        )  # gradient of the summed cross entropy with respect to the logits
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
