"""BERT-whitening: an untuned baseline that makes the vectors of a corpus isotropic (Su et al. 2021)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np

from opencse.evaluation.task import Encode
from opencse.foundation.errors import OpencseError

_RANK_TOLERANCE = 1e-10
_CHUNK = 16384  # sentences that are encoded at a time


@dataclass(frozen=True, kw_only=True, eq=False)
class Whitening:
    """The affine map `x -> (x - mean) @ projection` under which the fitted corpus has covariance I.

    Args:
        mean: Mean vector of the corpus, (d,).
        projection: `U Λ^(-1/2)` of the covariance `U Λ U^T`, (d, d).
    """

    mean: np.ndarray
    projection: np.ndarray

    @classmethod
    def fit(cls, encode: Encode, sentences: Iterable[str]) -> Whitening:
        """Fit on the vectors of a corpus, which is read and encoded in chunks.

        Args:
            encode: The model.
            sentences: Sentences of the corpus.

        Raises:
            OpencseError: The sentences span fewer dimensions than the vectors have.
        """
        count, total, square, origin = 0, np.zeros(0), np.zeros((0, 0)), np.zeros(0)
        lines = iter(sentences)
        while part := list(islice(lines, _CHUNK)):
            x = np.asarray(encode(part), dtype=np.float64)
            if count == 0:  # sums around a point near the mean keep their precision
                origin = x.mean(axis=0)
                total, square = np.zeros_like(origin), np.zeros((len(origin), len(origin)))
            x -= origin
            count, total, square = count + len(x), total + x.sum(axis=0), square + x.T @ x
        shift = total / max(count, 1)
        values, vectors = np.linalg.eigh(square / max(count, 1) - np.outer(shift, shift))
        if not count or values[0] <= _RANK_TOLERANCE * values[-1]:
            raise OpencseError(f"whitening was given {count} sentences, which are too few", "Give it more.")
        return cls(mean=origin + shift, projection=vectors[:, ::-1] / np.sqrt(values[::-1]))

    def __call__(self, matrix: np.ndarray) -> np.ndarray:
        """Whiten vectors (n, d) to float32."""
        return ((np.asarray(matrix, dtype=np.float64) - self.mean) @ self.projection).astype(np.float32)
