"""Geometry of the vectors: alignment, uniformity, anisotropy, and cosines by human score."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from opencse.evaluation.correlation import paired_cosine
from opencse.evaluation.pairs import ScoredPairs
from opencse.evaluation.sts import PairsTask
from opencse.evaluation.task import TaskResult, TextEmbeddings
from opencse.foundation.unit_rows import unit_rows

POSITIVE = 4.0
"""A pair with a score above this is a positive pair, as in SimCSE (Gao et al. 2021)."""

_BLOCK = 1024


@dataclass(frozen=True, kw_only=True, eq=False)
class GeometryTask:
    """Geometry of the vectors of pairs scored 0 to 5, and agreement with the scores; none of it enters an average.

    `spearman` is that of `PairsTask`. With unit vectors f(x), Wang and Isola (2020), eq. 1 and 2, as in SimCSE:

    - `alignment`: mean of ||f(x) - f(y)||^2 over positive pairs (score above 4); lower is closer.
    - `uniformity`: log of the mean of exp(-2 ||f(x) - f(y)||^2) over all pairs of distinct sentences; lower is more
      uniform.
    - `anisotropy`: mean cosine over all pairs of distinct sentences (Ethayarajh 2019); 0 is isotropic.
    - `first_direction`: share of the squared length of all vectors along their leading direction.

    `details["cosines"]` holds count, mean, deviation and quartiles of the cosines by score: [0, 1), …, [4, 5].

    Args:
        pairs: The pairs.
    """

    pairs: ScoredPairs

    @property
    def name(self) -> str:
        """Name of the task."""
        return f"geometry of {self.pairs.name}"

    def texts(self) -> Iterator[str]:
        """Yield both sides of all pairs."""
        yield from self.pairs.texts()

    def score(self, embeddings: TextEmbeddings) -> TaskResult:
        """Return the metrics."""
        first, second = (
            unit_rows(embeddings(side), np.float64) for side in (self.pairs.sentence1, self.pairs.sentence2)
        )
        sentences = list(dict.fromkeys(self.texts()))
        x = unit_rows(embeddings(sentences), np.float64)
        positive = self.pairs.gold > POSITIVE
        metrics: dict[str, float | None] = dict.fromkeys(("alignment", "uniformity", "anisotropy", "first_direction"))
        undefined = {}
        if positive.any():
            metrics["alignment"] = float(((first - second)[positive] ** 2).sum(axis=1).mean())
        else:
            undefined["alignment"] = f"no pair has a score above {POSITIVE:g}"
        if len(sentences) > 1:
            metrics |= _spread(x)
        else:
            undefined |= dict.fromkeys(("uniformity", "anisotropy", "first_direction"), "a single sentence")
        agreement = PairsTask(pairs=self.pairs).score(embeddings)
        metrics["spearman"] = agreement.metrics["spearman"]
        undefined |= {name: why for name, why in agreement.undefined.items() if name in metrics}
        return TaskResult(
            task=self.name,
            main=None,
            metrics=metrics,
            rows=len(self.pairs),
            data_sha256=self.pairs.sha256,
            undefined=undefined,
            details={
                "text": self.pairs.text,
                "positive_pairs": int(positive.sum()),
                "sentences": len(sentences),
                "cosines": self._by_score(embeddings),
            },
        )

    def _by_score(self, embeddings: TextEmbeddings) -> list[dict[str, Any]]:
        cosine = paired_cosine(embeddings(self.pairs.sentence1), embeddings(self.pairs.sentence2))
        bins = np.clip(np.floor(self.pairs.gold), 0, 4)
        return [{"from": low, "to": low + 1, **_distribution(cosine[bins == low])} for low in range(5)]


def _spread(x: np.ndarray) -> dict[str, float]:
    """Return the uniformity, anisotropy and leading direction of unit vectors (n, d)."""
    n, potential, cosines = len(x), 0.0, 0.0
    for start in range(0, n, _BLOCK):
        # Each pair once: this block with itself above the diagonal, and with all later rows.
        product = x[start : start + _BLOCK] @ x[start:].T
        upper = np.triu(np.ones(product.shape, dtype=bool), k=1)
        values = product[upper]
        cosines += float(values.sum())
        potential += float(np.exp(4 * values - 4).sum())  # ||a - b||^2 = 2 - 2 cos
    count = n * (n - 1) / 2
    share = np.linalg.eigvalsh(x.T @ x)[-1] / (x**2).sum()
    return {
        "uniformity": float(np.log(potential / count)),
        "anisotropy": cosines / count,
        "first_direction": float(share),
    }


def _distribution(values: np.ndarray) -> dict[str, Any]:
    if not len(values):
        return {"pairs": 0, "mean": None, "deviation": None, "quartiles": None}
    return {
        "pairs": len(values),
        "mean": float(values.mean()),
        "deviation": float(values.std()),
        "quartiles": np.percentile(values, [25, 50, 75]).tolist(),
    }
