"""The nearest sentences of a query among those of a set of pairs (DiffCSE Table 9)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from opencse.commands.reproduction.entries import Query
from opencse.commands.reproduction.pair_cosines import Listing
from opencse.evaluation import ScoredPairs, TextEmbeddings
from opencse.foundation.unit_rows import unit_rows

TOP = 3
"""Nearest sentences that are listed."""


@dataclass(frozen=True, kw_only=True)
class Neighbours:
    """The nearest sentences that one model finds.

    Attributes:
        ranks: The rank of the answer, from 1, by query number from 1; queries without an answer are left out.
        nearest: The nearest sentences of each query, with their cosines.
    """

    ranks: Mapping[int, int]
    nearest: Sequence[Sequence[tuple[str, float]]]

    def scores(self) -> dict[str, float]:
        """Return the ranks by column."""
        return {f"query {number}: rank": float(rank) for number, rank in self.ranks.items()}


def searched_texts(pairs: ScoredPairs, queries: Sequence[Query]) -> list[str]:
    """Return the distinct sentences of the pairs, and the queries."""
    return list(dict.fromkeys([*pairs.sentence1, *pairs.sentence2, *(query.text for query in queries)]))


def find_neighbours(pairs: ScoredPairs, queries: Sequence[Query], embeddings: TextEmbeddings) -> Neighbours:
    """Search for each query; it does not find itself.

    Args:
        pairs: The pairs whose sentences are searched.
        queries: The queries.
        embeddings: The vectors of `searched_texts`.
    """
    corpus = list(dict.fromkeys([*pairs.sentence1, *pairs.sentence2]))
    vectors = unit_rows(embeddings(corpus), np.float64)
    ranks, nearest = {}, []
    for number, query in enumerate(queries, 1):
        own = query.text.strip().lower()
        cosines = vectors @ unit_rows(embeddings([query.text]), np.float64)[0]
        order = [row for row in np.argsort(-cosines, kind="stable") if corpus[row].strip().lower() != own]
        nearest.append([(corpus[row], float(cosines[row])) for row in order[:TOP]])
        if query.answer:
            row, side = query.answer
            answer = (pairs.sentence1, pairs.sentence2)[side - 1][row]
            ranks[number] = 1 + [corpus[each] for each in order].index(answer)
    return Neighbours(ranks=ranks, nearest=nearest)


def list_neighbours(found: Mapping[str, Neighbours], queries: Sequence[Query]) -> Listing:
    """Return the nearest sentences of each query, a column for each model."""
    rows = [("query", "rank", *found)]
    for index, query in enumerate(queries):
        for rank in range(TOP):
            texts = [
                f"{text} ({cosine:.3f})" for text, cosine in (each.nearest[index][rank] for each in found.values())
            ]
            rows.append((query.text, str(rank + 1), *texts))
    return tuple(rows)
