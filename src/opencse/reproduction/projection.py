"""Sentence vectors in two dimensions (BYOP Figure 1)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opencse.evaluation.task import unit_rows


@dataclass(frozen=True, kw_only=True, eq=False)
class Projection:
    """The first two principal components of unit vectors.

    Attributes:
        points: Coordinates, shape (n, 2).
        share: Share of the variance that they hold.
        mean_cosine: Mean cosine of two distinct sentences; 1 is a single direction.
    """

    points: np.ndarray
    share: float
    mean_cosine: float

    def scores(self) -> dict[str, float]:
        """Return the measures by column."""
        return {"mean cosine": self.mean_cosine, "variance shown, %": 100 * self.share}


def project(vectors: np.ndarray) -> Projection:
    """Project n vectors of shape (n, d), made unit vectors, on their first two principal components."""
    unit = unit_rows(vectors, np.float64)
    n = len(unit)
    left, values, _ = np.linalg.svd(unit - unit.mean(axis=0), full_matrices=False)
    cosines = (np.linalg.norm(unit.sum(axis=0)) ** 2 - n) / (n * (n - 1))
    return Projection(
        points=left[:, :2] * values[:2],
        share=float((values[:2] ** 2).sum() / (values**2).sum()),
        mean_cosine=float(cosines),
    )
