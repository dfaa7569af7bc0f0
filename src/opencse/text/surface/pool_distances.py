"""Edit distances between each text and a pool of others: millions of pairs among thousands of texts.

`edit_distance` compares pairs. This module is faster if texts occur in many pairs: each text is split into words once.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import numpy as np

from opencse.text.surface.symbols import Symbols


def pool_distance(texts: Symbols, anchors: np.ndarray, pools: np.ndarray) -> np.ndarray:
    """Return the edit distance of each anchor to every text of its pool (DebCSE, Eq. 1).

    Args:
        texts: Symbols of all texts.
        anchors: Indices of texts, int64 (a,).
        pools: Indices of texts, int64 (a, n); negative if a pool has fewer than n members.

    Returns:
        int32 (a, n); 0 without a member.
    """
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    words, ids = np.unique(texts.keys, return_inverse=True)
    # rapidfuzz compares strings fastest: each word becomes a character, unless there are more words than characters.
    whole: Sequence = ids.tolist()
    if len(words) <= sys.maxunicode:
        whole = ids.astype("<u4").tobytes().decode("utf-32-le", "surrogatepass")
    cut = [
        whole[start:stop] for start, stop in zip(texts.offsets[:-1].tolist(), texts.offsets[1:].tolist(), strict=True)
    ]
    out = np.zeros(pools.shape, dtype=np.int32)
    for anchor, members, distances in zip(anchors.tolist(), pools, out, strict=True):
        valid = members >= 0
        pool = [cut[member] for member in members[valid].tolist()]
        distances[valid] = cdist([cut[anchor]], pool, scorer=Levenshtein.distance, dtype=np.int32, workers=1)[0]
    return out
