"""Checks of numbers that users give, and rows scaled to length 1."""

from __future__ import annotations

import math

import numpy as np

from opencse.foundation.errors import OpencseError

LARGEST_SEED = 2**32 - 1
"""Largest seed that NumPy accepts."""


def check_least(settings: object, least: float, *names: str) -> None:
    """Raise ValueError if an attribute of some settings is below its least value; None is none."""
    for name in names:
        value = getattr(settings, name)
        if value is not None and value < least:
            raise ValueError(f"{name} must be at least {least}, not {value}")


def check_seed(seed: int) -> None:
    """Raise an `OpencseError` if a seed is out of range."""
    if not 0 <= seed <= LARGEST_SEED:
        raise OpencseError(f"seed {seed} is out of range", f"Give a seed from 0 to {LARGEST_SEED}.")


def check_minutes(minutes: float) -> None:
    """Raise an `OpencseError` if a time limit is not a positive, finite number."""
    if not 0 < minutes < math.inf:
        raise OpencseError(f"{minutes:g} minutes are not a time limit", "Give a number of minutes, such as 15.")


def unit_rows(matrix: np.ndarray, dtype: type[np.floating] = np.float32) -> np.ndarray:
    """Return the rows of a matrix, (n, d), divided by their Euclidean norm; a zero row stays zero."""
    matrix = np.asarray(matrix, dtype=dtype)
    return matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)
