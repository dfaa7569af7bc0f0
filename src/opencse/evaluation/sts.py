"""Semantic textual similarity by the SimCSE protocol.

One Spearman correlation between cosine and gold score over all pairs of a task: subsets of STS12–16 are
concatenated ("all"), not averaged (SimCSE, appendix B, Gao et al. 2021).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from opencse.evaluation.correlation import paired_cosine, pearson, spearman, why_undefined
from opencse.evaluation.pairs import ScoredPairs
from opencse.evaluation.task import TaskResult, TextEmbeddings

STS_TASKS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")
"""The seven tasks, in the order of the papers' tables."""


@dataclass(frozen=True, kw_only=True, eq=False)
class PairsTask:
    """Correlation of cosines with gold scores: an STS task, or any set of scored pairs.

    Metrics (times 100): `spearman` (the main one) and `pearson`, both over all pairs; `details` has the Spearman
    correlation and the mean cosine of each subset.

    Args:
        pairs: The test set.
    """

    pairs: ScoredPairs

    @property
    def name(self) -> str:
        """Name of the set."""
        return self.pairs.name

    def texts(self) -> Iterator[str]:
        """Yield both sides of all pairs."""
        yield from self.pairs.texts()

    def score(self, embeddings: TextEmbeddings) -> TaskResult:
        """Return the correlations of cosines with gold scores."""
        gold = self.pairs.gold
        first, second = embeddings(self.pairs.sentence1), embeddings(self.pairs.sentence2)
        cosine = paired_cosine(first, second)
        metrics = {"spearman": _percent(spearman(gold, cosine)), "pearson": _percent(pearson(gold, cosine))}
        reason = why_undefined(gold, cosine)
        undefined = dict.fromkeys(metrics, reason) if reason else {}
        details: dict[str, Any] = {"text": self.pairs.text, "aggregation": "all", "similarity": "cosine"}
        if len(subsets := dict.fromkeys(self.pairs.subsets or ())) > 1:
            members = {name: np.asarray(self.pairs.subsets) == name for name in subsets}
            details["subsets"] = {
                name: {
                    "rows": int(rows.sum()),
                    "spearman": _percent(spearman(gold[rows], cosine[rows])),
                    "cosine_mean": float(cosine[rows].mean()),
                }
                for name, rows in members.items()
            }
        return TaskResult(
            task=self.name,
            main="spearman",
            metrics=metrics,
            rows=len(self.pairs),
            data_sha256=self.pairs.sha256,
            undefined=undefined,
            details=details,
        )


def _percent(value: float | None) -> float | None:
    return None if value is None else 100 * value
