"""Measures of wording.py by another similarity of texts than the cosine of their vectors: that of a meaning block.

All texts are compared, not the first hits of a search alone, so that nothing depends on their number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from wording import Development, area

from opencse.evaluation.sts import spearman

Similar = Callable[[Sequence[str], Sequence[str]], np.ndarray]
"""Similarities of n and m texts, (n, m)."""
SURE = 0.9
"""Share of the entailed pairs that are to pass a cache's threshold."""
CHUNK = 64


def pairs(similar: Similar, rows: Sequence[Any], side: int = 1) -> np.ndarray:
    """Return the similarities of the first texts of rows with another one, (n,)."""
    chunks = (rows[start : start + CHUNK] for start in range(0, len(rows), CHUNK))
    return np.concatenate([np.diagonal(similar([r[0] for r in c], [r[side] for r in c])) for c in chunks])


def right(similar: Similar, rows: Sequence[Any]) -> np.ndarray:
    """Return whether the second text of each row is nearer to the first than all others."""
    return pairs(similar, rows) > np.max([pairs(similar, rows, side) for side in range(2, len(rows[0]))], axis=0)


def measured(similar: Similar, of: Development) -> dict[str, float | None]:
    """Return the measures by name."""
    found: dict[str, float | None] = {
        f"antonyms, {kind}": 100 * float(right(similar, rows).mean()) for kind, rows in of.quads.items()
    }
    found["order, area"] = area(pairs(similar, of.order), pairs(similar, of.order, 2))
    found["XNLI"] = 100 * float(right(similar, of.nli).mean())
    threshold = np.quantile(pairs(similar, of.nli), 1 - SURE)
    found["false hits"] = 100 * float((pairs(similar, of.nli, 2) >= threshold).mean())
    found["SICK, area"] = area(*(pairs(similar, of.sick[kind]) for kind in ("ENT", "CON")))
    for name, rows in of.sts.items():
        scored = [(row["sentence1"], row["sentence2"]) for row in rows]
        found[name] = 100 * spearman(np.array([float(row["score"]) for row in rows]), pairs(similar, scored))
    asked, known = ([row["text"] for row in part] for part in (of.asked, of.known))
    nearest = similar(asked, known).argmax(axis=1)
    same = [of.known[n]["label"] == row["label"] for n, row in zip(nearest, of.asked, strict=True)]
    found["CLINC"] = 100 * float(np.mean(same))
    first, second = zip(*of.same, strict=True)
    found["MRPC"] = 100 * float((similar(first, second).argmax(axis=1) == np.arange(len(first))).mean())
    return found
