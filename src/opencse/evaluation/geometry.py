"""Geometry of the vectors: alignment, uniformity and anisotropy."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from opencse.evaluation.sts import PairsTask
from opencse.evaluation.task import TaskResult, TextEmbeddings
from opencse.foundation.numbers import unit_rows

POSITIVE = 4.0
"""A pair with a score above this is a positive pair, as in SimCSE (Gao et al. 2021)."""

_BLOCK = 1024


@dataclass(frozen=True, kw_only=True, eq=False)
class GeometryTask(PairsTask):
    """Geometry of the vectors of pairs scored 0 to 5; none of it enters an average.

    With unit vectors f(x), Wang and Isola (2020), eq. 1 and 2, as in SimCSE:

    - `alignment`: mean of ||f(x) - f(y)||^2 over positive pairs (score above 4); lower is closer.
    - `uniformity`: log of the mean of exp(-2 ||f(x) - f(y)||^2) over all pairs of distinct sentences; lower is more
      uniform.
    - `anisotropy`: mean cosine over all pairs of distinct sentences (Ethayarajh 2019); 0 is isotropic.
    - `spearman`: correlation of cosine and score, times 100, by which papers choose settings on STS-B dev.

    Args:
        pairs: The pairs.
    """

    @property
    def name(self) -> str:
        """Name of the task."""
        return f"geometry of {self.pairs.name}"

    def score(self, embeddings: TextEmbeddings) -> TaskResult:
        """Return the metrics."""
        first, second = (
            unit_rows(embeddings(side), np.float64) for side in (self.pairs.sentence1, self.pairs.sentence2)
        )
        sentences = list(dict.fromkeys(self.texts()))
        positive = self.pairs.gold > POSITIVE
        correlation = super().score(embeddings)
        metrics: dict[str, float | None] = dict.fromkeys(("alignment", "uniformity", "anisotropy"))
        metrics["spearman"] = correlation.metrics["spearman"]
        undefined = {name: reason for name, reason in correlation.undefined.items() if name in metrics}
        if positive.any():
            metrics["alignment"] = float(((first - second)[positive] ** 2).sum(axis=1).mean())
        else:
            undefined["alignment"] = f"no pair has a score above {POSITIVE:g}"
        if len(sentences) > 1:
            metrics |= _spread(unit_rows(embeddings(sentences), np.float64))
        else:
            undefined |= dict.fromkeys(("uniformity", "anisotropy"), "a single sentence")
        details = {"text": self.pairs.text, "positive_pairs": int(positive.sum()), "sentences": len(sentences)}
        return replace(correlation, main=None, metrics=metrics, undefined=undefined, details=details)


def _spread(x: np.ndarray) -> dict[str, float]:
    """Return the uniformity and anisotropy of unit vectors (n, d)."""
    n, potential, cosines = len(x), 0.0, 0.0
    for start in range(0, n, _BLOCK):
        # Each pair once: this block with itself above the diagonal, and with all later rows.
        product = x[start : start + _BLOCK] @ x[start:].T
        values = product[np.triu_indices_from(product, k=1)]
        cosines += float(values.sum())
        potential += float(np.exp(4 * values - 4).sum())  # ||a - b||^2 = 2 - 2 cos
    count = n * (n - 1) / 2
    return {"uniformity": float(np.log(potential / count)), "anisotropy": cosines / count}
