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


def measures(scores: np.ndarray, relevance: np.ndarray, cuts: Sequence[int] = (1, 5, 10)) -> dict[str, float]:
    """Return the measures of one query, in [0, 1]; trec_eval's names are in brackets.

    `map` and `map@10` (`map`, `map_cut_10`): average precision, whose mean over queries is MAP. `mrr` (`recip_rank`)
    and `mrr@10`: 1 / rank of the first relevant item. `recall@k` (`recall_k`): share of the relevant items among the
    first k. `ndcg@10` (`ndcg_cut_10`): normalised discounted cumulative gain, with linear gain.

    Args:
        scores: Scores (n,).
        relevance: Grades (n,), at least one above 0.
        cuts: Values of k for recall.
    """
    ranks, grades = relevant_ranks(scores, relevance)
    first, best, reciprocal = ranks <= 10, -np.sort(-grades)[:10], 1 / ranks[0]
    precision = np.arange(1, len(ranks) + 1) / ranks
    gain = (grades[first] / np.log2(ranks[first] + 1)).sum()
    found = {
        "ndcg@10": gain / (best / np.log2(np.arange(2, len(best) + 2))).sum(),
        "map": precision.mean(),
        "mrr": reciprocal,
        "map@10": (precision * first).mean(),
        "mrr@10": reciprocal if first[0] else 0.0,
        **{f"recall@{k}": (ranks <= k).mean() for k in cuts},
    }
    return {name: float(value) for name, value in found.items()}
