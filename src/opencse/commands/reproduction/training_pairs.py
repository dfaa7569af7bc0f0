"""The pairs that a system trains on (DebCSE Tables 1 and 4, Figures 1 and 4; SAN Table 1)."""

from __future__ import annotations

from opencse.commands.reproduction.pair_groups import SentencePairs
from opencse.recipes import Recipe
from opencse.text.corpus import Corpus

PAIRS = 2000
"""Pairs of each group: those of the first rows."""


def training_pairs(recipe: Recipe, rows: Corpus, limit: int = PAIRS) -> dict[str, SentencePairs]:
    """Return the `positive` and `negative` pairs of a system, as its terms name them.

    Without views of negatives, the negative of a sentence is the next sentence, as of a batch.

    Args:
        recipe: The resolved recipe.
        rows: What it is trained on.
        limit: Number of pairs of each kind.
    """
    found: dict[str, list[tuple[str, str]]] = {"positive": [], "negative": []}
    columns = {role: _columns(recipe, role) for role in found}
    anchor = recipe.views[next(str(term.anchor) for term in recipe.terms if hasattr(term, "anchor"))].text
    wanted = list(dict.fromkeys([anchor, *columns["positive"], *columns["negative"]]))
    previous = ""
    for row in rows.rows(wanted):
        cells = dict(zip(wanted, row, strict=True))
        sentence = cells[anchor]
        if not sentence:
            continue
        for role, names in columns.items():
            found[role] += [(sentence, text) for name in names if (text := cells[name])]
        if not columns["negative"] and previous:
            found["negative"].append((previous, sentence))
        previous = sentence
        if all(len(pairs) >= limit for pairs in found.values()):
            break
    return {
        role: SentencePairs(first=[a for a, _ in pairs[:limit]], second=[b for _, b in pairs[:limit]])
        for role, pairs in found.items()
        if pairs
    }


def _columns(recipe: Recipe, role: str) -> list[str]:
    """Return the text columns of a role, `positive` or `negative`, in all terms."""
    views = []
    for term in recipe.terms:
        named = [getattr(term, role, ""), *getattr(term, f"{role}s", ())]
        views += [view for view in named if view in recipe.views]
    return list(dict.fromkeys(recipe.views[view].text for view in views))
