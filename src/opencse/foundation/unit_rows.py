"""Unit vectors."""

from __future__ import annotations

import numpy as np


def unit_rows(matrix: np.ndarray, dtype: type[np.floating] = np.float32) -> np.ndarray:
    """Return the rows of a matrix, (n, d), divided by their Euclidean norm; a zero row stays zero."""
    matrix = np.asarray(matrix, dtype=dtype)
    return matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)
