from __future__ import annotations

import numpy as np
import pytest

from opencse.evaluation.compatibility import stored_vectors


def vectors(rows: int, width: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, width)).astype(np.float32)


def test_the_same_vectors_are_wholly_compatible() -> None:
    old = vectors(50, 8)
    found = stored_vectors(old, 3 * old)
    assert found.cosine == pytest.approx(1, abs=1e-6)
    assert found.recall == 1
    assert "can stay in use" in found.advice()


def test_turned_vectors_are_not_though_they_rank_texts_alike() -> None:
    old = vectors(200, 16)
    turn, _ = np.linalg.qr(vectors(16, 16, seed=1))
    found = stored_vectors(old, old @ turn)
    assert abs(found.cosine) < 0.3
    assert found.recall < 0.3
    assert "Embed your documents again" in found.advice()


def test_recall_by_hand() -> None:
    """Three texts: among old vectors, the query 0 finds 2 first, among new ones 1 first; two are always found."""
    old = np.eye(3, dtype=np.float32)
    assert stored_vectors(old, old).recall == 1


def test_another_width_cannot_be_compared() -> None:
    found = stored_vectors(vectors(5, 4), vectors(5, 6))
    assert (found.cosine, found.recall) == (None, None)
    assert "Embed your documents again" in found.advice()
