"""Which rows make up which batch: a function of seed and step alone, so that there is nothing to save."""

from __future__ import annotations

import numpy as np


class BatchSampler:
    """Shuffled batches without replacement; an epoch's last incomplete batch is left out.

    Args:
        rows: Sentences in the corpus.
        batch_size: Sentences per batch over all processes.
        seed: Each epoch's order is drawn from it and the epoch's number.
    """

    def __init__(self, rows: int, batch_size: int, seed: int) -> None:
        self.rows = rows
        self.batch_size = batch_size
        self.seed = seed
        self.batches_per_epoch = rows // batch_size
        self._epoch = -1
        self._order = np.zeros(0, dtype=np.int64)

    def batch(self, step: int) -> np.ndarray:
        """Return the rows of the batch of a step, over all epochs counted from 0."""
        epoch, position = divmod(step, self.batches_per_epoch)
        if epoch != self._epoch:
            order = np.arange(self.rows, dtype=np.int64)
            np.random.default_rng([self.seed, epoch]).shuffle(order)
            self._epoch, self._order = epoch, order
        start = position * self.batch_size
        return self._order[start : start + self.batch_size]
