"""Unit vectors of texts, encoded once and looked up by text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from opencse.evaluation import Encode
from opencse.foundation.unit_rows import unit_rows


class UnitVectors:
    """Unit vectors by text; each text is encoded once.

    Args:
        encode: From n texts to a matrix of shape (n, dim).
        texts: The texts to encode first.
    """

    def __init__(self, encode: Encode, texts: Iterable[str]) -> None:
        self._encode = encode
        self._row: dict[str, int] = {}
        self._matrix = np.zeros((0, 0), dtype=np.float32)
        self.add(texts)

    def add(self, texts: Iterable[str]) -> None:
        """Encode the texts that have no vector yet."""
        new = [text for text in dict.fromkeys(texts) if text not in self._row]
        if new:
            block = unit_rows(self._encode(new))
            self._row.update({text: len(self._row) + i for i, text in enumerate(new)})
            self._matrix = np.concatenate([self._matrix, block]) if self._matrix.size else block

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of n texts, shape (n, dim)."""
        return self._matrix[[self._row[text] for text in texts]]

    def cosines(self, a: Sequence[str], b: Sequence[str]) -> np.ndarray:
        """Return the cosines of n pairs, shape (n,)."""
        return (self(a) * self(b)).sum(axis=1) if a else np.zeros(0, dtype=np.float32)
