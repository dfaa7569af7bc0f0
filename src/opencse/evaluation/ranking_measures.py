"""Ranking metrics for one query, by the definitions of trec_eval.

All follow from the ranks of the relevant items. Ties are ordered against the model, the less relevant first, so that a
model with constant scores does not profit from the order of a file.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def relevant_ranks(scores: np.ndarray, relevance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the ranks (from 1, ascending) and grades of the relevant items.

    Args:
        scores: Scores (n,), higher is better.
        relevance: Grades (n,); an item is relevant if its grade is above 0.

    Returns:
        Two vectors (r,), with r the number of relevant items.
    """
    scores, relevance = np.asarray(scores), np.asarray(relevance, dtype=np.float64)
    relevant = np.flatnonzero(relevance > 0)
    relevant = relevant[np.lexsort((relevance[relevant], -scores[relevant]))]
    others = np.sort(scores[relevance <= 0])
    above = len(others) - np.searchsorted(others, scores[relevant], side="left")
    return above + np.arange(1, len(relevant) + 1), relevance[relevant]


def reciprocal_rank(ranks: np.ndarray) -> float:
    """Return 1 / rank of the first relevant item (trec_eval's `recip_rank`, whose mean over queries is MRR)."""
    return float(1 / ranks[0])


def average_precision(ranks: np.ndarray, k: float = np.inf) -> float:
    """Return the average precision of the first k (trec_eval's `map_cut_k`; its mean over queries is MAP)."""
    return float((np.arange(1, len(ranks) + 1) / ranks * (ranks <= k)).mean())


def recall_at(ranks: np.ndarray, k: int) -> float:
    """Return the share of the relevant items among the first k (trec_eval's `recall_k`)."""
    return float((ranks <= k).mean())


def ndcg_at(ranks: np.ndarray, grades: Sequence[float] | np.ndarray, k: int) -> float:
    """Return the normalised discounted cumulative gain of the first k, with linear gain (trec_eval's `ndcg_cut_k`)."""
    grades = np.asarray(grades, dtype=np.float64)
    first = ranks <= k
    best = -np.sort(-grades)[:k]
    return float(
        (grades[first] / np.log2(ranks[first] + 1)).sum() / (best / np.log2(np.arange(2, len(best) + 2))).sum()
    )


def measures(scores: np.ndarray, relevance: np.ndarray, cuts: Sequence[int] = (1, 5, 10)) -> dict[str, float]:
    """Return `map`, `mrr`, both also `@10`, `ndcg@10` and `recall@k` of one query, in [0, 1].

    Args:
        scores: Scores (n,).
        relevance: Grades (n,), at least one above 0.
        cuts: Values of k for recall.
    """
    ranks, grades = relevant_ranks(scores, relevance)
    return {
        "ndcg@10": ndcg_at(ranks, grades, 10),
        "map": average_precision(ranks),
        "mrr": reciprocal_rank(ranks),
        "map@10": average_precision(ranks, 10),
        "mrr@10": reciprocal_rank(ranks) if ranks[0] <= 10 else 0.0,
        **{f"recall@{k}": recall_at(ranks, k) for k in cuts},
    }
