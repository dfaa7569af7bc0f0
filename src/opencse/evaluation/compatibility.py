"""Can vectors that one model made stay in an index that another model searches?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_TOP = 10
_COMPATIBLE = 0.9  # share of hits that stay: below, documents should be embedded again


@dataclass(frozen=True, kw_only=True)
class StoredVectors:
    """How an index of old vectors fares with a new model.

    Attributes:
        cosine: Mean cosine of a text's old and new vector; None where their widths differ.
        recall: Share of the ten nearest texts by new vectors alone that a new query finds among old vectors.
        texts: Texts that this was measured on.
    """

    cosine: float | None
    recall: float | None
    texts: int

    def advice(self) -> str:
        """Return what to do about an index, in two sentences."""
        if self.cosine is None or self.recall is None:
            return (
                "Stored vectors: old and new vectors cannot be compared. Embed your documents again with the new model."
            )
        finding = (
            f"Stored vectors: the old and the new vector of a text have a mean cosine of {self.cosine:.2f}; a new "
            f"query among old vectors finds {100 * self.recall:.0f} % of the ten texts that it should "
            f"({self.texts} texts)."
        )
        if self.recall < _COMPATIBLE:
            return f"{finding} Embed your documents again with the new model; don't mix vectors of both."
        return f"{finding} Old vectors can stay in use while documents are embedded again."


def stored_vectors(old: np.ndarray, new: np.ndarray) -> StoredVectors:
    """Compare the vectors of the same texts by two models.

    Args:
        old: Vectors of the n texts by the model that made the index, (n, d).
        new: Vectors of the same texts by the model that searches it, (n, e).
    """
    if old.shape != new.shape or len(old) < 2:
        return StoredVectors(cosine=None, recall=None, texts=len(old))
    old, new = (
        (matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)).astype(np.float32)
        for matrix in (old, new)
    )
    top = min(_TOP, len(old) - 1)
    among_new, among_old = _nearest(new, new, top), _nearest(new, old, top)
    shared = [len(np.intersect1d(a, b)) / top for a, b in zip(among_new, among_old, strict=True)]
    return StoredVectors(cosine=float((old * new).sum(axis=1).mean()), recall=float(np.mean(shared)), texts=len(old))


def _nearest(queries: np.ndarray, index: np.ndarray, top: int) -> np.ndarray:
    """Return the places of the nearest vectors of each query, its own text left out."""
    similarity = queries @ index.T
    np.fill_diagonal(similarity, -np.inf)
    return np.argpartition(-similarity, top - 1, axis=1)[:, :top]
