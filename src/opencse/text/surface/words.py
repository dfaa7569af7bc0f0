"""Texts as bytes that compiled code can split into words, with the same result as `str.split()`."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

SPACE, UPPER = 1, 2


def joined(texts: Sequence[str]) -> tuple[np.ndarray, int]:
    """Return all texts as UTF-8, each followed by a line break, and their size in bytes.

    The bytes are returned as overlapping little-endian numbers, uint64 (size,): number p holds the bytes p to p + 7.
    """
    data = "\n".join((*texts, "\n" * 8)).encode("utf-8", "surrogatepass")
    size = len(data) - 8
    return np.ndarray((size,), dtype="<u8", buffer=data, strides=(1,)), size


def plain(text: str, *, lower: bool) -> str:
    """Return a text with single blanks between its words, lower-cased if asked."""
    return " ".join((text.lower() if lower else text).split())


@cache
def character_classes() -> np.ndarray:
    """Return flags of the first 65,536 characters, uint8: `SPACE`, and `UPPER` if `str.lower` changes the character."""
    characters = map(chr, range(1 << 16))
    return np.array([SPACE * c.isspace() + UPPER * (c.lower() != c) for c in characters], dtype=np.uint8)
