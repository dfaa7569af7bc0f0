"""Compatibility of stored vectors of an old model with queries of a new model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

import numpy as np

from opencse.evaluation.neighbours import search
from opencse.foundation.unit_rows import unit_rows

TEXTS = 1000
"""Texts of a corpus whose old and new vectors are compared."""

_TOP = 10
_COMPATIBLE = 0.9  # recall below which documents should be embedded again


@dataclass(frozen=True, kw_only=True)
class StoredVectors:
    """Retrieval of a new model among stored vectors of an old model.

    Attributes:
        cosine: Mean cosine of the old and the new vector of a text; None if their dimensions differ.
        recall: Share of the ten nearest texts among new vectors that a new query finds among old vectors.
        texts: Number of texts measured.
    """

    cosine: float | None
    recall: float | None
    texts: int

    def advice(self) -> str:
        """Return a recommendation for an index, in two sentences."""
        if self.cosine is None or self.recall is None:
            return (
                "Stored vectors: old and new vectors cannot be compared. Embed your documents again with the new model."
            )
        finding = (
            f"Stored vectors: the old and the new vector of a text have a mean cosine of {self.cosine:.2f}; a new "
            f"query among old vectors finds {100 * self.recall:.0f} % of its ten nearest texts ({self.texts:,} "
            "texts)."
        )
        if self.recall < _COMPATIBLE:
            return f"{finding} Embed your documents again with the new model; don't mix vectors of both."
        return f"{finding} Old vectors can stay in use while documents are embedded again."


def compared_texts(texts: Iterable[str]) -> list[str]:
    """Return the texts of a corpus whose old and new vectors are compared: the distinct ones among the first."""
    return list(dict.fromkeys(islice(texts, TEXTS)))


def stored_vectors(old: np.ndarray, new: np.ndarray) -> StoredVectors:
    """Compare the vectors of two models for the same texts.

    Args:
        old: Vectors of n texts by the model of the index, (n, d).
        new: Vectors of the same texts by the model of the queries, (n, e).
    """
    if old.shape != new.shape or len(old) < 2:
        return StoredVectors(cosine=None, recall=None, texts=len(old))
    old, new = unit_rows(old), unit_rows(new)
    top = min(_TOP, len(old) - 1)
    (among_new, _), (among_old, _) = (search(new, index, top, np.arange(len(new))) for index in (new, old))
    shared = [len(np.intersect1d(a, b)) / top for a, b in zip(among_new, among_old, strict=True)]
    return StoredVectors(cosine=float((old * new).sum(axis=1).mean()), recall=float(np.mean(shared)), texts=len(old))
