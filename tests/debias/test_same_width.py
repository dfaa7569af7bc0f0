"""Vectors of the old length: what the projection keeps."""

from __future__ import annotations

import numpy as np
import pytest

from opencse.debias.same_width import projection_axes

D = 6


def vectors(n: int, seed: int = 1) -> np.ndarray:
    """v at strength 1: half of it e, half of it z, with a last number of 0."""
    halves = np.random.default_rng(seed).normal(size=(2, n, D)) * np.linspace(1, 3, D)
    halves[1, :, -1] = 0
    e, z = halves / np.linalg.norm(halves, axis=-1, keepdims=True)
    return np.concatenate([e, z], axis=1) / np.sqrt(2)


def test_the_axes_are_those_of_the_formula() -> None:
    v, pairs, strength = vectors(40), np.array([[0, 1], [2, 3], [2, 4]]), 0.5
    total = np.zeros((2 * D, 2 * D))
    scaled = [np.concatenate([row[:D], strength * row[D:]]) for row in v]
    rows = [np.outer(row, row) for row in scaled]
    apart = [np.outer(scaled[i] - scaled[j], scaled[i] - scaled[j]) for i, j in pairs]
    for moments in (sum(rows), sum(apart)):
        total += moments / np.trace(moments)
    total[range(D), range(D)] += 0.3 / D
    values, directions = np.linalg.eigh(total)
    expected = directions[:, np.argsort(values)[-D:]]
    axes = projection_axes(strength, v, pairs, D)
    np.testing.assert_allclose(axes @ axes.T, expected @ expected.T, atol=1e-5)


@pytest.mark.parametrize("texts", [3, 40])
def test_without_the_block_nothing_is_lost(texts: int) -> None:
    v = vectors(texts)
    projected = v[:, :D] @ projection_axes(0.0, v, np.array([[0, 1]]), D)[:D]
    np.testing.assert_allclose(projected @ projected.T, v[:, :D] @ v[:, :D].T, atol=1e-6)


def test_what_tells_pairs_apart_is_kept() -> None:
    v = vectors(40)
    v[1] = v[0]
    v[1, D] = -v[0, D]  # the pair differs in one number of z
    v[:, D] *= 0.05  # and hardly any text has it
    difference = (v[0] - v[1]) / np.linalg.norm(v[0] - v[1])
    kept = [
        np.linalg.norm(difference @ projection_axes(1.0, v, pairs, D))
        for pairs in (np.array([[0, 1]]), np.array([[2, 3]]))
    ]
    assert kept[0] > 0.95 > 0.5 > kept[1]


def test_a_corpus_without_pairs_has_axes_all_the_same() -> None:
    v = vectors(40)
    assert np.isfinite(projection_axes(0.4, v, np.zeros((0, 2), int), D)).all()
