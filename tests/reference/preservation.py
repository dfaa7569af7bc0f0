"""Distillation of cosines, and bounds on cosines, written as loops."""

from __future__ import annotations

import numpy as np

from tests.reference.contrastive import cosine


def kept(vectors: dict[str, np.ndarray], has: dict[str, np.ndarray], views: tuple[str, ...]) -> list[np.ndarray]:
    return [vectors[view][i] for view in views for i in range(len(vectors[view])) if has[view][i]]


def pair_preserving(
    student: dict[str, np.ndarray],
    teacher: dict[str, np.ndarray],
    has: dict[str, np.ndarray],
    pairs: list[tuple[str, str]],
) -> float:
    losses = []
    for a, b in pairs:
        for i in range(len(student[a])):
            if has[a][i] and has[b][i]:
                error = cosine(student[a][i], student[b][i]) - cosine(teacher[a][i], teacher[b][i])
                losses.append(error**2)
    return float(np.mean(losses)) if losses else 0.0


def rows_of(has: dict[str, np.ndarray], views: tuple[str, ...]) -> list[int]:
    return [i for view in views for i in range(len(has[view])) if has[view][i]]


def similarity_preserving(student: list[np.ndarray], teacher: list[np.ndarray], rows: list[int]) -> float:
    n = len(student)
    losses = [
        (cosine(student[i], student[j]) - cosine(teacher[i], teacher[j])) ** 2
        for i in range(n)
        for j in range(n)
        if rows[i] != rows[j]
    ]
    return float(np.mean(losses)) if losses else 0.0


def similarity_bound(
    vectors: dict[str, np.ndarray],
    has: dict[str, np.ndarray],
    pairs: list[tuple[str, str]],
    floor: float | None,
    ceiling: float | None,
) -> float:
    losses = []
    for first, second in pairs:
        for i in range(len(vectors[first])):
            if has[first][i] and has[second][i]:
                c = cosine(vectors[first][i], vectors[second][i])
                losses.append(max(floor - c, 0) if floor is not None else max(c - ceiling, 0))
    return float(np.mean(losses)) if losses else 0.0


def similarity_order(
    vectors: dict[str, np.ndarray],
    has: dict[str, np.ndarray],
    closer: list[tuple[str, str]],
    farther: list[tuple[str, str]],
    margin: float,
) -> float:
    losses = []
    for i in range(len(next(iter(vectors.values())))):
        for near in closer:
            for far in farther:
                if all(has[view][i] for view in (*near, *far)):
                    c_near, c_far = (cosine(vectors[a][i], vectors[b][i]) for a, b in (near, far))
                    losses.append(max(margin - c_near + c_far, 0))
    return float(np.mean(losses)) if losses else 0.0
