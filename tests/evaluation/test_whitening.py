from __future__ import annotations

import numpy as np
import pytest

from opencse.evaluation.whitening import Whitening
from opencse.foundation.errors import OpencseError

RNG = np.random.default_rng(0)
VECTORS = RNG.normal(size=(500, 6)) @ RNG.normal(size=(6, 6)) + 100 * RNG.normal(size=6)
CORPUS = [str(i) for i in range(500)]


def encode(texts):
    return VECTORS[[int(text) for text in texts]].astype(np.float32)


def test_equals_the_closed_form_and_keeps_the_leading_directions():
    whitening = Whitening.fit(encode, iter(CORPUS), dimension=3, chunk=64)
    x = encode(CORPUS).astype(np.float64)
    u, s, _ = np.linalg.svd(np.cov(x.T, bias=True))
    expected = (x - x.mean(axis=0)) @ (u / np.sqrt(s))[:, :3]
    actual = whitening(x)
    assert actual.dtype == np.float32
    assert np.abs(np.abs(actual) - np.abs(expected)).max() < 1e-3  # eigenvectors have no sign


def test_too_few_sentences():
    with pytest.raises(OpencseError, match="4 sentences span 3"):
        Whitening.fit(encode, CORPUS[:4])
    assert Whitening.fit(encode, CORPUS[:4], dimension=3)(VECTORS).shape == (500, 3)
    with pytest.raises(OpencseError, match="given 0 sentences"):
        Whitening.fit(encode, [])
