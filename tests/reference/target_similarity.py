"""Cosines regressed towards the teacher's, lowered by opposition, written as loops."""

from __future__ import annotations

import numpy as np

from tests.reference.contrastive import cosine

Vectors = dict[str, np.ndarray]


def target(cos: float, polarity: float, strength: float, power: float) -> float:
    return cos - strength * (1 - polarity) * max(cos, 0) ** power


def target_similarity(
    student: Vectors,
    teacher: Vectors,
    polarity: Vectors | None,
    has: dict[str, np.ndarray],
    same: list[tuple[str, str]],
    opposite: list[tuple[str, str]],
    related: list[tuple[str, str]],
    across: list[str],
    strength: float,
    power: float,
) -> float:
    losses = []

    def add(a: str, i: int, b: str, j: int, known: float | None) -> None:
        if known is None:
            known = 1.0 if polarity is None else cosine(polarity[a][i], polarity[b][j])
        wanted = target(cosine(teacher[a][i], teacher[b][j]), known, strength, power)
        losses.append((cosine(student[a][i], student[b][j]) - wanted) ** 2)

    rows = len(next(iter(student.values())))
    for pairs, known in ((same, 1.0), (opposite, -1.0), (related, None)):
        for a, b in pairs:
            for i in range(rows):
                if has[a][i] and has[b][i]:
                    add(a, i, b, i, known)
    sentences = [(view, i) for view in across for i in range(rows) if has[view][i]]
    for n, (a, i) in enumerate(sentences):
        for b, j in sentences[n + 1 :]:
            if i != j:
                add(a, i, b, j, None)
    return float(np.mean(losses)) if losses else 0.0
