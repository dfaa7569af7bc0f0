"""Edit distance between each text and a pool of others: millions of pairs among thousands of texts.

`edit_distance` compares columns of pairs and finds an alignment on the way. Here only the distance is wanted, and every
text occurs in many pairs. So each text is turned into a string once, with one code point per distinct word, and
rapidfuzz's bit-parallel distance (exact, whatever the length) runs over these.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Literal

import numpy as np

_SURROGATES = 0xD800
_CODES = 0x110000 - 0x800  # code points that are no half of a surrogate pair


def coded(
    texts: Sequence[str], *, unit: Literal["word", "character"] = "word", lower: bool = True
) -> Sequence[Sequence[Hashable]]:
    """Turn texts into strings whose character edits are the word edits of the texts.

    Codes hold among these texts only. With more distinct words than there are code points (1.1 million), tuples of
    numbers are given instead, which rapidfuzz compares too, only slower.

    Args:
        texts: n texts.
        unit: What one edit changes: a white-space word, or a character (then the texts themselves are given).
        lower: Fold case.
    """
    if unit == "character":
        return [text.lower() for text in texts] if lower else list(texts)
    codes: dict[str, int] = {}
    rows = [
        [codes.setdefault(word, len(codes)) for word in (text.lower() if lower else text).split()] for text in texts
    ]
    if len(codes) > _CODES:
        return [tuple(row) for row in rows]
    letters = [chr(code if code < _SURROGATES else code + 0x800) for code in range(len(codes))]
    return ["".join([letters[code] for code in row]) for row in rows]


def pool_distance(texts: Sequence[Sequence[Hashable]], anchors: np.ndarray, pools: np.ndarray) -> np.ndarray:
    """Return the edit distance of each anchor to every text of its pool (DebCSE eq. 1).

    Args:
        texts: What `coded` gave.
        anchors: Indices into `texts`, (a,).
        pools: Indices into `texts`, (a, n); negative where a pool has fewer than n members.

    Returns:
        int32 (a, n); 0 where there is no member.
    """
    from rapidfuzz.distance import Levenshtein
    from rapidfuzz.process import cdist

    out = np.zeros(pools.shape, dtype=np.int32)
    for row, (anchor, there) in enumerate(zip(anchors.tolist(), pools >= 0, strict=True)):
        members = [texts[i] for i in pools[row, there].tolist()]
        if members:
            out[row, there] = cdist(
                [texts[anchor]], members, scorer=Levenshtein.distance, dtype=np.int32, workers=1
            ).ravel()
    return out


def lengths(texts: Sequence[Sequence[Hashable]]) -> np.ndarray:
    """Words (or characters) in each of the texts that `coded` gave: int32 (n,)."""
    return np.fromiter(map(len, texts), dtype=np.int32, count=len(texts))
