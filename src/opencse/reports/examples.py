"""A few searches to look at: the first three hits of every model, side by side (in the manner of DiffCSE Table 9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opencse.probing import Findings, Retrieval
from opencse.reports.text import shown

RELATIONS = {"paraphrase": "same meaning", "negation": "opposite", "other": "other sentence"}


@dataclass(frozen=True, kw_only=True)
class Example:
    """One query: for each model its hits as (text, relation, what the relation means, cosine)."""

    query: str
    columns: tuple[tuple[str, tuple[tuple[str, str, str, str], ...]], ...]


def examples(models: Mapping[str, Findings], count: int = 6) -> list[Example]:
    """Choose queries: first those on which the models differ, then equally many failures and successes."""
    results = {name: found.retrieval for name, found in models.items() if found.retrieval and found.retrieval.queries}
    if not results:
        return []
    chosen = _chosen(list(results.values()), count)
    first = next(iter(results.values()))
    return [
        Example(
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
    """Rows spread over the file, by what the models find first."""
    outcomes = [tuple(r.hits[row][0].relation for r in results) for row in range(len(results[0].queries))]
    differ = [row for row, each in enumerate(outcomes) if len(set(each)) > 1]
    fooled = [row for row, each in enumerate(outcomes) if set(each) == {"negation"}]
    right = [row for row, each in enumerate(outcomes) if set(each) == {"paraphrase"}]
    taken = _spread(differ, count // 2 if fooled or right else count)
    taken += _spread(fooled, (count - len(taken) + 1) // 2)
    return taken + _spread(right, count - len(taken))


def _spread(rows: list[int], count: int) -> list[int]:
    """At most `count` of the rows, evenly spaced."""
    count = min(count, len(rows))
    return [rows[i * len(rows) // count] for i in range(count)]
