"""BERT-whitening: an untuned baseline that makes the vectors of a corpus isotropic (Su et al. 2021)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np

from opencse.evaluation.task import Encode
from opencse.foundation.errors import OpencseError

_RANK_TOLERANCE = 1e-10


@dataclass(frozen=True, kw_only=True, eq=False)
class Whitening:
    """The affine map `x -> (x - mean) @ projection` under which the fitted corpus has covariance I.

    Args:
        mean: Mean vector of the corpus, (d,).
        projection: `U Λ^(-1/2)` of the k leading directions of the covariance `U Λ U^T`, (d, k).
    """

    mean: np.ndarray
    projection: np.ndarray

    @classmethod
    def fit(
        cls, encode: Encode, sentences: Iterable[str], *, dimension: int | None = None, chunk: int = 16384
    ) -> Whitening:
        """Fit on the vectors of a corpus, which is read and encoded in chunks.

        Args:
            encode: The model.
            sentences: Sentences of the corpus.
            dimension: Output dimension k; by default d. The best in the paper are 256 of 768 and 384 of 1024.
            chunk: Sentences per call of `encode`.

        Raises:
            OpencseError: `dimension` exceeds the rank of the covariance.
        """
        count, total, square, origin = 0, np.zeros(0), np.zeros((0, 0)), np.zeros(0)
        lines = iter(sentences)
        while part := list(islice(lines, chunk)):
            x = np.asarray(encode(part), dtype=np.float64)
            if count == 0:  # sums around a point near the mean keep their precision
                origin = x.mean(axis=0)
                total, square = np.zeros_like(origin), np.zeros((len(origin), len(origin)))
            x -= origin
            count, total, square = count + len(x), total + x.sum(axis=0), square + x.T @ x
        if count < 2:
            raise OpencseError(f"whitening was given {count} sentences", "Fit it on a corpus of at least thousands.")
        shift = total / count
        values, vectors = np.linalg.eigh(square / count - np.outer(shift, shift))
        values, vectors = values[::-1], vectors[:, ::-1]
        width = dimension or len(values)
        rank = int((values > _RANK_TOLERANCE * values[0]).sum())
        if not 1 <= width <= rank:
            raise OpencseError(
                f"whitening to {width} dimensions, but {count} sentences span {rank}",
                f"Fit it on more sentences, or ask for at most {rank} dimensions.",
            )
        return cls(mean=origin + shift, projection=vectors[:, :width] / np.sqrt(values[:width]))

    def __call__(self, matrix: np.ndarray) -> np.ndarray:
        """Whiten vectors (n, d) to float32 (n, k)."""
        return ((np.asarray(matrix, dtype=np.float64) - self.mean) @ self.projection).astype(np.float32)

    @property
    def sha256(self) -> str:
        """Hash of mean and projection."""
        return hashlib.sha256(self.mean.tobytes() + np.ascontiguousarray(self.projection).tobytes()).hexdigest()
