"""RankCSE's lists and divergences, element by element, and ListMLE by brute force."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np

from tests.reference.contrastive import cosine


def softmax(scores: Sequence[float]) -> np.ndarray:
    e = np.exp(np.asarray(scores) - max(scores))
    return e / e.sum()


def jensen_shannon(p: np.ndarray, q: np.ndarray) -> float:
    total = 0.0
    for x, y in zip(p, q):
        m = (x + y) / 2
        total += 0.5 * (x * math.log(x / m) if x > 0 else 0) + 0.5 * (
            y * math.log(y / m) if y > 0 else 0
        )
    return total


def ranking_consistency(
    a: np.ndarray, b: np.ndarray, rows: np.ndarray, t: float, coded: bool = False
) -> float:
    here = np.flatnonzero(rows)
    found = []
    for i in here:
        p = softmax([cosine(a[i], b[j]) / t for j in here])
        q = softmax([cosine(b[i], a[j]) / t for j in here])
        if coded:  # log m is clamped from below at 1e-7: the mixture is gone
            p, q = np.maximum(p, 1e-7), np.maximum(q, 1e-7)
            found.append(
                0.5 * sum(x * (math.log(x) - 1e-7) for x in p)
                + 0.5 * sum(x * (math.log(x) - 1e-7) for x in q)
            )
        else:
            found.append(jensen_shannon(p, q))
    return float(np.mean(found)) if found else 0.0


def lists(
    student: tuple[np.ndarray, np.ndarray],
    teachers: list[tuple[np.ndarray, np.ndarray]],
    weights: Sequence[float],
    has: tuple[np.ndarray, np.ndarray],
    t: float,
    t_teacher: float,
    exclude_self: bool,
) -> list[tuple[list[float], list[float]]]:
    """Each anchor's list of scaled similarities: the student's, and the weighted sum of the teachers'."""
    out = []
    for i in np.flatnonzero(has[0]):
        columns = [j for j in np.flatnonzero(has[1]) if not (exclude_self and i == j)]
        if columns:
            mine = [cosine(student[0][i], student[1][j]) / t for j in columns]
            theirs = [
                sum(w * cosine(u[i], v[j]) for w, (u, v) in zip(weights, teachers))
                / sum(weights)
                / t_teacher
                for j in columns
            ]
            out.append((mine, theirs))
    return out


def list_net(pairs: list[tuple[list[float], list[float]]]) -> float:
    losses = [-float(softmax(theirs) @ np.log(softmax(mine))) for mine, theirs in pairs]
    return float(np.mean(losses)) if losses else 0.0


def list_mle(
    pairs: list[tuple[list[float], list[float]]], per_position: bool = False, epsilon: float = 0.0
) -> float:
    losses = []
    for mine, theirs in pairs:
        order = sorted(range(len(mine)), key=lambda j: -theirs[j])
        sorted_scores = [mine[j] - (max(mine) if epsilon else 0) for j in order]
        loss = sum(
            math.log(sum(math.exp(s) for s in sorted_scores[k:]) + epsilon) - sorted_scores[k]
            for k in range(len(order))
        )
        losses.append(loss / len(order) if per_position else loss)
    return float(np.mean(losses)) if losses else 0.0


def permutation_probability(scores: Sequence[float], order: Sequence[int]) -> float:
    """The share of a permutation among all of them under Plackett-Luce: draw without replacement, by weight."""

    def unnormalised(each: Sequence[int]) -> float:
        left, share = list(each), 1.0
        while left:
            share *= math.exp(scores[left[0]]) / sum(math.exp(scores[j]) for j in left)
            left.pop(0)
        return share

    total = sum(unnormalised(each) for each in itertools.permutations(range(len(scores))))
    return unnormalised(order) / total
