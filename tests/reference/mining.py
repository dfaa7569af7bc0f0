"""Literal transcription of DebCSE's sampling (eq. 1 to 6), one candidate at a time, with exact powers."""

from __future__ import annotations

from decimal import Decimal, getcontext

getcontext().prec = 50


def surface_similarity(edits: list[int]) -> list[Decimal]:
    """S_sur, eq. 1."""
    total = sum(Decimal(edit).exp() for edit in edits)
    return [1 - Decimal(edit).exp() / total for edit in edits]


def semantic_similarity(cosines: list[float]) -> list[Decimal]:
    """S_sem, eq. 2."""
    total = sum(Decimal(cosine).exp() for cosine in cosines)
    return [Decimal(cosine).exp() / total for cosine in cosines]


def selection(edits: list[int], cosines: list[float], weight: float, role: str) -> list[Decimal]:
    """P~, eq. 3 and 5."""
    share = Decimal(weight)
    pairs = zip(surface_similarity(edits), semantic_similarity(cosines), strict=True)
    if role == "negative":
        return [(1 - share) * surface + share * (1 - meaning) for surface, meaning in pairs]
    return [(1 - share) * (1 - surface) + share * meaning for surface, meaning in pairs]


def probability(edits: list[int], cosines: list[float], weight: float, role: str) -> list[Decimal]:
    """P, eq. 4 and 6."""
    scores = selection(edits, cosines, weight, role)
    total = sum(score.exp() for score in scores)
    return [score.exp() / total for score in scores]
