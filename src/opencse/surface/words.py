"""Columns of texts as bytes that compiled code can cut into words, exactly as `str.split()` does."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

SPACE, UPPER = 1, 2


def joined(texts: Sequence[str]) -> tuple[np.ndarray, int]:
    """Return all texts as UTF-8, each followed by a line break, and their size in bytes.

    The bytes come as overlapping little-endian numbers, uint64 (size,): number p holds the eight bytes from byte p on.
    """
    data = "\n".join((*texts, "\n" * 8)).encode("utf-8", "surrogatepass")
    size = len(data) - 8
    return np.ndarray((size,), dtype="<u8", buffer=data, strides=(1,)), size


def plain(text: str, *, lower: bool) -> str:
    """Return a text with the same words, case folded by `str.lower` if asked, and single blanks between them."""
    return " ".join((text.lower() if lower else text).split())


@cache
def character_classes() -> np.ndarray:
    """Return for each of the first 65,536 characters whether it is white space, or changed by `str.lower`, uint8."""
    characters = map(chr, range(1 << 16))
    return np.array([SPACE * c.isspace() + UPPER * (c.lower() != c) for c in characters], dtype=np.uint8)
