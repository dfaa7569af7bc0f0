"""Limits of numbers: which ones users may give, how much text training takes, and how few rows support no claim.

docs/guides/train.md lists the sizes, and a test compares the page with this module.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from opencse.foundation.errors import OpencseError

LARGEST_SEED = 2**32 - 1
"""Largest seed that NumPy accepts."""


LEAST_SENTENCES = 8
"""Different sentences below which training is refused."""

FEW_SENTENCES = 500
"""Different sentences below which training is warned of."""

LEAST_ROWS = 20
"""Rows below which a rate with its interval is not called better, worse or a finding."""

LEAST_PAIRS = 100
"""Scored pairs below which two correlations, which have no interval, are not called different."""

LEAST_SEARCHED = 100
"""Texts below which nothing is said about a search index: the ten nearest of few texts are nearly all of them."""


def check_least(settings: object, least: float, *names: str) -> None:
    """Raise ValueError if an attribute of some settings is below its least value; None is none."""
    for name in names:
        value = getattr(settings, name)
        if value is not None and value < least:
            raise ValueError(f"{name} must be at least {least}, not {value}")


def check_range(settings: object, interval: str, *names: str) -> None:
    """Raise ValueError if an attribute of some settings, or a number in it, is outside an interval; None is none.

    Args:
        settings: An object with these attributes: numbers, or tuples of them.
        interval: In the notation of mathematics, such as `[0, 1)` for numbers of at least 0 and
            below 1.
        names: Names of the attributes.
    """
    low, high = map(float, interval[1:-1].split(","))
    for name in names:
        value = getattr(settings, name)
        for number in value if isinstance(value, tuple) else (value,):
            at_an_end = (number == low and interval[0] == "[") or (
                number == high and interval[-1] == "]"
            )
            if number is not None and not (low < number < high or at_an_end):
                raise ValueError(f"{name} must lie in {interval}, not {number}")


def check_seed(seed: int) -> None:
    """Raise an `OpencseError` if a seed is out of range."""
    if not 0 <= seed <= LARGEST_SEED:
        raise OpencseError(f"seed {seed} is out of range", f"Give a seed from 0 to {LARGEST_SEED}.")


def check_minutes(minutes: float) -> None:
    """Raise an `OpencseError` if a time limit is not a positive, finite number."""
    if not 0 < minutes < math.inf:
        raise OpencseError(
            f"{minutes:g} minutes are not a time limit", "Give a number of minutes, such as 15."
        )


def unit_rows(matrix: np.ndarray, dtype: type[np.floating] = np.float32) -> np.ndarray:
    """Return the rows of a matrix, (n, d), divided by their Euclidean norm; a zero row stays zero."""
    matrix = np.asarray(matrix, dtype=dtype)
    return matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)


def few_sentences(texts: Iterable[str]) -> list[str]:
    """Return a warning if a training corpus has few different sentences; at most `FEW_SENTENCES` are read.

    Raises:
        OpencseError: There are fewer than `LEAST_SENTENCES`.
    """
    seen: set[str] = set()
    for text in texts:
        seen.add(text)
        if len(seen) == FEW_SENTENCES:
            return []
    if len(seen) < LEAST_SENTENCES:
        raise OpencseError(
            f"{len(seen)} different sentences are too few to train on: {LEAST_SENTENCES} are the least",
            f"Give {FEW_SENTENCES} or more, or try the command on `demo`.",
        )
    return [
        f"{len(seen)} different sentences are few to train on: with fewer than {FEW_SENTENCES}, scores say little"
    ]
