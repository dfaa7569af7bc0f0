"""Sampling of batches: a function of seed and step only, so that a checkpoint need not save it."""

from __future__ import annotations

import numpy as np


class BatchSampler:
    """Shuffled batches without replacement; the incomplete last batch of an epoch is dropped.

    Args:
        rows: Number of training rows.
        batch_size: Rows per batch, over all processes.
        seed: Seed of the order of rows, together with the number of the epoch.
    """

    def __init__(self, rows: int, batch_size: int, seed: int) -> None:
        self.rows = rows
        self.batch_size = batch_size
        self.seed = seed
        self.batches_per_epoch = rows // batch_size
        self._epoch = -1
        self._order = np.zeros(0, dtype=np.int64)

    def batch(self, step: int) -> np.ndarray:
        """Return the row numbers of a batch, int64 (batch_size,); steps count from 0 over all epochs."""
        epoch, position = divmod(step, self.batches_per_epoch)
        if epoch != self._epoch:
            order = np.arange(self.rows, dtype=np.int64)
            np.random.default_rng([self.seed, epoch]).shuffle(order)
            self._epoch, self._order = epoch, order
        start = position * self.batch_size
        return self._order[start : start + self.batch_size]
