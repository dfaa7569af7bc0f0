"""Limits of numbers: allowed ranges, how much text training needs, how few rows are too few.

docs/guides/train.md lists the sizes, and a test compares the page with this module.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterable

import numpy as np

from opencse.foundation.errors import OpencseError

LARGEST_SEED = 2**32 - 1
"""Largest seed that NumPy accepts."""


LEAST_SENTENCES = 8
"""Training is refused with fewer different sentences."""

FEW_SENTENCES = 500
"""Training warns about fewer different sentences."""

LEAST_ROWS = 20
"""With fewer rows, a rate and its interval support no verdict."""

LEAST_PAIRS = 100
"""With fewer scored pairs, two correlations are not called different."""

LEAST_SEARCHED = 100
"""With fewer texts, search is not judged: the ten nearest of few texts are nearly all of them."""


def check_least(settings: object, least: float, *names: str) -> None:
    """Raise ValueError if an attribute of `settings` is below `least`; None is allowed."""
    for name in names:
        value = getattr(settings, name)
        if value is not None and value < least:
            raise ValueError(f"{name} must be at least {least}, not {value}")


def check_range(settings: object, interval: str, *names: str) -> None:
    """Raise ValueError if an attribute of `settings` is outside an interval; None is allowed.

    Args:
        settings: An object with these attributes: numbers, or tuples of them.
        interval: In mathematical notation, such as `[0, 1)` for at least 0 and below 1.
        names: Names of the attributes.
    """
    low_text, high_text = interval[1:-1].split(",")
    low = float(low_text)
    high = float(high_text)
    low_included = interval[0] == "["
    high_included = interval[-1] == "]"
    for name in names:
        value = getattr(settings, name)
        numbers = value if isinstance(value, tuple) else (value,)
        for number in numbers:
            if number is None or low < number < high:
                continue
            if low_included and number == low:
                continue
            if high_included and number == high:
                continue
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
    """Return the rows of a matrix, (n, d), with Euclidean norm 1; a zero row stays zero."""
    matrix = np.asarray(matrix, dtype=dtype)
    return matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)


def normalised(text: str) -> str:
    """Return the form of a text by which texts are compared: composed characters, and single spaces between words."""
    return " ".join(unicodedata.normalize("NFC", text).split())


def few_sentences(texts: Iterable[str]) -> list[str]:
    """Return a warning if a training corpus has few different sentences.

    At most `FEW_SENTENCES` different ones are read.

    Raises:
        OpencseError: There are fewer than `LEAST_SENTENCES`.
    """
    seen: set[str] = set()
    for text in texts:
        seen.add(normalised(text))
        if len(seen) == FEW_SENTENCES:
            return []
    if len(seen) < LEAST_SENTENCES:
        raise OpencseError(
            f"{len(seen)} different sentences are too few to train on",
            f"Give at least {LEAST_SENTENCES}, better {FEW_SENTENCES} or more, or try the command "
            "on `demo`.",
        )
    warning = (
        f"{len(seen)} different sentences are few to train on: with fewer than {FEW_SENTENCES}, "
        "scores mean little"
    )
    return [warning]
