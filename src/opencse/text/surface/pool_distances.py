"""Edit distances between each text and a pool of others: millions of pairs among thousands of texts.

`edit_distance` compares pairs and computes an alignment. This module computes only the distance, and is faster if texts
occur in many pairs: each text is split into words once, and the anchor of a pool is prepared once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from opencse.text.surface.words import character_classes, joined, plain


@dataclass(frozen=True, kw_only=True)
class Symbols:
    """The words or characters of n texts, text after text.

    Attributes:
        keys: uint64; equal words or characters have equal keys.
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
    if unit == "character":
        folded = [text.lower() if lower else text for text in texts]
        codes = "".join(folded).encode("utf-32-le", "surrogatepass")
        return _symbols(np.frombuffer(codes, dtype="<u4").astype(np.uint64), [len(text) for text in folded])
    from opencse.text.surface.pool_kernel import word_keys  # loads numba, which not every command needs

    texts = list(texts)
    for _ in range(2):
        data, size = joined(texts)
        keys = np.empty(size // 2 + 1, dtype=np.uint64)
        counts, odd = np.empty(len(texts), dtype=np.int64), np.zeros(len(texts), dtype=np.bool_)
        whole = word_keys(data, character_classes(), lower, keys, counts, odd) == size
        if whole and not odd.any():
            break  # once more, after Python has lower-cased and split the odd texts
        for i in np.flatnonzero(odd) if whole else range(len(texts)):
            texts[i] = plain(texts[i], lower=lower)
    return _symbols(keys[: counts.sum()], counts)


def _symbols(keys: np.ndarray, counts: Sequence[int] | np.ndarray) -> Symbols:
    return Symbols(keys=keys, offsets=np.concatenate(([0], np.cumsum(counts, dtype=np.int64))))


def pool_distance(texts: Symbols, anchors: np.ndarray, pools: np.ndarray) -> np.ndarray:
    """Return the edit distance of each anchor to every text of its pool (DebCSE, Eq. 1).

    The time is proportional to the total number of words of the pools, for anchors of up to 64 words.

    Args:
        texts: Symbols of all texts.
        anchors: Indices of texts, int64 (a,).
        pools: Indices of texts, int64 (a, n); negative if a pool has fewer than n members.

    Returns:
        int32 (a, n); 0 without a member.
    """
    from opencse.text.surface.pool_kernel import distances

    out = np.zeros(pools.shape, dtype=np.int32)
    distances(texts.keys, texts.offsets, anchors, pools, out)
    return out
