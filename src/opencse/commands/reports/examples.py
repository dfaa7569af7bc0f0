"""Example searches: the first three hits of every model side by side (as in DiffCSE Table 9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opencse.commands.reports.text import shown
from opencse.evaluation.probes import ProbeScores, Retrieval

RELATIONS = {"paraphrase": "same meaning", "negation": "opposite", "other": "other sentence"}


@dataclass(frozen=True, kw_only=True)
class QueryExample:
    """A query with the hits of each model: (text, relation, label of the relation, cosine)."""

    query: str
    columns: tuple[tuple[str, tuple[tuple[str, str, str, str], ...]], ...]


def examples(models: Mapping[str, ProbeScores], count: int = 6) -> list[QueryExample]:
    """Choose queries: first those on which the models differ, then as many failures as successes.

    Args:
        models: Scores by label.
        count: Maximum number of queries.
    """
    results = {name: found.retrieval for name, found in models.items() if found.retrieval and found.retrieval.queries}
    if not results:
        return []
    chosen = _chosen(list(results.values()), count)
    first = next(iter(results.values()))
    return [
        QueryExample(
            query=shown(first.queries[row]),
            columns=tuple(
                (
                    shown(name, 40),
                    tuple(
                        (shown(hit.text), hit.relation, RELATIONS[hit.relation], f"{hit.cosine:.2f}")
                        for hit in result.hits[row]
                    ),
                )
                for name, result in results.items()
            ),
        )
        for row in chosen
    ]


def _chosen(results: list[Retrieval], count: int) -> list[int]:
    """Return rows spread over the file, grouped by the relation of the first hit."""
    outcomes = [tuple(r.hits[row][0].relation for r in results) for row in range(len(results[0].queries))]
    differ = [row for row, each in enumerate(outcomes) if len(set(each)) > 1]
    fooled = [row for row, each in enumerate(outcomes) if set(each) == {"negation"}]
    right = [row for row, each in enumerate(outcomes) if set(each) == {"paraphrase"}]
    taken = _spread(differ, count // 2 if fooled or right else count)
    taken += _spread(fooled, (count - len(taken) + 1) // 2)
    return taken + _spread(right, count - len(taken))


def _spread(rows: list[int], count: int) -> list[int]:
    """Return at most `count` of the rows, evenly spaced."""
    count = min(count, len(rows))
    return [rows[i * len(rows) // count] for i in range(count)]
