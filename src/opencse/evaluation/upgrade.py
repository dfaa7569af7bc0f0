"""Whether an index of an old model's vectors can take those of a new model, one by one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opencse.encoder.meaning_block import upgrade
from opencse.foundation.numbers import unit_rows

_SAME = 1e-2  # of a coordinate: the old vector in half precision, or in bf16
_TOP = 10


@dataclass(frozen=True, kw_only=True)
class IndexUpgrade:
    """How stored vectors of an old model go together with a new one.

    Attributes:
        strength: Strength of the meaning block that the new model has beside the old one; None if it has none.
        new_hits: Share of new vectors among the ten nearest of a new model's query, while half of the documents still
            have upgraded old vectors; a half if these don't fall behind. None without a block.
    """

    strength: float | None = None
    new_hits: float | None = None

    def advice(self) -> str:
        """Return what to do with an index."""
        if self.strength is None or self.new_hits is None:
            return "Stored vectors of both models cannot be compared: embed your documents again, and don't mix them."
        return (
            f"Stored vectors stay in use: append numbers to them (opencse.encoder.meaning_block.upgrade, strength "
            f"{self.strength:.2f}), and the old queries (as_query) rank old and new vectors together as before. Whole "
            f"queries wait until all documents are embedded again: with half of them, {100 * self.new_hits:.0f} % of "
            "the first ten hits are among the new ones."
        )


def index_upgrade(old: np.ndarray, new: np.ndarray, queries: np.ndarray) -> IndexUpgrade:
    """Find out whether a new model is an old one with a meaning block beside it, and try a half-upgraded index.

    Args:
        old: Unit vectors of n documents by the old model, (n, d).
        new: Unit vectors of the same documents by the new model, (n, d').
        queries: Unit vectors of queries by the new model, (m, d').
    """
    d = old.shape[1]
    if new.shape[1] != 2 * d or np.abs(unit_rows(new[:, :d]) - old).max() > _SAME:
        return IndexUpgrade()
    strength = float(np.median(np.linalg.norm(new[:, d:], axis=1) / np.linalg.norm(new[:, :d], axis=1)))
    fresh = np.arange(len(old)) % 2 == 0
    index = np.where(fresh[:, None], new, upgrade(old, strength))
    nearest = np.argsort(-(queries @ index.T), axis=1, kind="stable")[:, :_TOP]
    return IndexUpgrade(strength=strength, new_hits=float(fresh[nearest].mean()))
