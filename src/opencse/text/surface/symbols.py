"""The words or characters of texts as numbers, in arrays that surface measures compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal

import numpy as np


@dataclass(frozen=True, kw_only=True)
class Symbols:
    """The words or characters of n texts, text after text.

    Attributes:
        keys: int64; equal words or characters have equal keys, and different ones differ but for a chance of 2^-64.
        offsets: int64 (n + 1,); the keys of text i are `keys[offsets[i]:offsets[i + 1]]`.
    """

    keys: np.ndarray
    offsets: np.ndarray

    @property
    def lengths(self) -> np.ndarray:
        """Number of words or characters of each text, int64 (n,)."""
        return np.diff(self.offsets)


def symbols(texts: Sequence[str], *, unit: Literal["word", "character"] = "word", lower: bool = True) -> Symbols:
    """Return the keys of the words (those of `str.split()`) or characters (code points) of texts.

    Args:
        texts: n texts.
        unit: Unit of an edit.
        lower: Ignore case.
    """
    folded = [text.lower() if lower else text for text in texts]
    cut: Sequence[Sequence[str]] = [text.split() for text in folded] if unit == "word" else folded
    keys = np.fromiter(map(hash, chain.from_iterable(cut)), dtype=np.int64)
    return Symbols(keys=keys, offsets=np.concatenate(([0], np.cumsum([len(one) for one in cut], dtype=np.int64))))
