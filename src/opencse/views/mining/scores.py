"""Which members of a pool are drawn: selection scores from meaning and surface, and the draw (DebCSE §4.1, §4.2).

All arrays are (a, n): a rows with a pool of up to n candidates each, `there` false where a pool is smaller.

`faithful` is the paper's text. Its softmax of raw edit distances gives one candidate all the mass, its softmax of
cosines gives each about 1 / n, and its second softmax of values within [0, 1] is almost flat: every candidate of a pool
of 200 is drawn with 0.98 to 1.02 times the probability of a uniform draw. `sound` keeps the linear mixture, on scores
that are comparable (standardised within the pool), and sharpens it as the paper's prose asks, with a temperature.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

Mode = Literal["sound", "faithful"]
Role = Literal["negative", "positive"]


def selection_scores(
    cosine: np.ndarray,
    distance: np.ndarray,
    longer: np.ndarray,
    there: np.ndarray,
    *,
    weight: float,
    role: Role,
    mode: Mode,
) -> np.ndarray:
    """Return the selection score of each candidate, before the last softmax: P~ of DebCSE eq. 3 and 5.

    With S_sur and S_sem the surface and semantic similarity, negatives get (1 - w) S_sur + w (1 - S_sem) and positives
    (1 - w) (1 - S_sur) + w S_sem. `faithful`: S_sur = 1 - softmax(distance), S_sem = softmax(cosine), over the pool
    (eq. 1, 2). `sound`: S_sur and S_sem are the z-scores of 1 - distance / longer and of the cosine within the pool,
    and "1 - S" is read as "-S".

    Args:
        cosine: Of row and candidate.
        distance: Their edit distance.
        longer: The length of the longer one, in the unit of the distance.
        there: Which candidates exist.
        weight: w, the paper's λ_n and λ_p: the share of meaning.
        role: What is drawn.
        mode: See above.

    Returns:
        float64 (a, n); 0 where there is no candidate. A pool whose members are all alike has equal scores.
    """
    if mode == "faithful":
        surface, meaning = 1 - _softmax(distance, there), _softmax(cosine, there)
        one = 1.0
    else:
        ratio = np.divide(distance, longer, out=np.zeros(distance.shape), where=longer > 0)
        surface, meaning = _standardised(1 - ratio, there), _standardised(cosine, there)
        one = 0.0
    if role == "negative":
        score = (1 - weight) * surface + weight * (one - meaning)
    else:
        score = (1 - weight) * (one - surface) + weight * meaning
    return np.where(there, score, 0.0)


def probabilities(scores: np.ndarray, there: np.ndarray, temperature: float) -> np.ndarray:
    """Return the probability that a candidate is drawn first: softmax(score / temperature), DebCSE eq. 4 and 6.

    The paper's temperature is 1. At 0 the whole mass is on the greatest score, shared among equals.
    """
    if temperature == 0:
        best = there & (scores == np.where(there, scores, -np.inf).max(axis=1, keepdims=True))
        return best / np.maximum(best.sum(axis=1, keepdims=True), 1)
    return _softmax(scores / temperature, there)


def draw(scores: np.ndarray, there: np.ndarray, noise: np.ndarray, *, count: int, temperature: float) -> np.ndarray:
    """Draw candidates without replacement, each with probability ∝ exp(score / temperature) of those that are left.

    The `count` greatest of score + temperature x noise, with Gumbel noise, are such a draw; temperature 0 gives the
    greatest scores, the first of equals.

    Args:
        scores: What `selection_scores` gave.
        there: Which candidates exist.
        noise: Standard Gumbel noise, (a, n).
        count: m, how many are drawn.
        temperature: 0 for the arg-max.

    Returns:
        int64 (a, count): places in the pool in the order of the draw, -1 where the pool is used up.
    """
    rows, n = scores.shape
    key = scores + temperature * noise if temperature else scores.copy()
    key[~there] = -np.inf
    out = np.full((rows, count), -1, dtype=np.int64)
    for k in range(min(count, n)):
        best = key.argmax(axis=1)
        found = np.flatnonzero(key[np.arange(rows), best] > -np.inf)
        out[found, k] = best[found]
        key[found, best[found]] = -np.inf
    return out


def gumbel(row_seeds: np.ndarray, candidates: np.ndarray) -> np.ndarray:
    """Return standard Gumbel noise that depends on a row's seed and a candidate's number alone.

    Args:
        row_seeds: uint64 (a,), each well mixed (`opencse.views.constructor.row_seed`).
        candidates: int64 (a, n).

    Returns:
        float64 (a, n), finite.
    """
    bits = row_seeds[:, None] + (candidates.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):  # SplitMix64
        bits ^= bits >> np.uint64(shift)
        bits *= np.uint64(factor)
    bits ^= bits >> np.uint64(31)
    uniform = ((bits >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52  # within (0, 1)
    return -np.log(-np.log(uniform))


def _softmax(values: np.ndarray, there: np.ndarray) -> np.ndarray:
    """Softmax over the candidates that exist, 0 elsewhere; distances of thousands do not overflow."""
    shifted = np.where(there, values, -np.inf).astype(np.float64)
    with np.errstate(invalid="ignore"):
        powers = np.exp(shifted - shifted.max(axis=1, keepdims=True, initial=-np.inf))
    powers = np.where(there, powers, 0.0)
    return powers / np.maximum(powers.sum(axis=1, keepdims=True), 1e-300)


def _standardised(values: np.ndarray, there: np.ndarray) -> np.ndarray:
    """z-scores within each pool; 0 where all are equal."""
    count = np.maximum(there.sum(axis=1, keepdims=True), 1)
    centred = np.where(there, values, 0.0).astype(np.float64)
    centred = np.where(there, centred - centred.sum(axis=1, keepdims=True) / count, 0.0)
    deviation = np.sqrt((centred**2).sum(axis=1, keepdims=True) / count)
    return np.divide(centred, deviation, out=np.zeros_like(centred), where=deviation > 1e-9)
