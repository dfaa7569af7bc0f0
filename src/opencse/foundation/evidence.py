"""Sizes below which training is refused or warned of, and below which a figure supports no claim.

docs/guides/train.md lists them, and a test compares the page with this module.
"""

from __future__ import annotations

from collections.abc import Iterable

from opencse.foundation.errors import OpencseError

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
    return [f"{len(seen)} different sentences are few to train on: with fewer than {FEW_SENTENCES}, scores say little"]
