"""Rows in chunks, so that only a few of them are in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

Item = TypeVar("Item")


def chunks(rows: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """Yield lists of `size` rows; the last may be shorter.

    Example:
        >>> list(chunks("abcde", 2))
        [['a', 'b'], ['c', 'd'], ['e']]
    """
    iterator = iter(rows)
    chunk = list(islice(iterator, size))
    while chunk:
        yield chunk
        chunk = list(islice(iterator, size))
