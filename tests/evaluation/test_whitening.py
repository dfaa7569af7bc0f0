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


def test_equals_the_closed_form(monkeypatch):
    monkeypatch.setattr("opencse.evaluation.whitening._CHUNK", 64)
    x = encode(CORPUS).astype(np.float64)
    u, s, _ = np.linalg.svd(np.cov(x.T, bias=True))
    expected = (x - x.mean(axis=0)) @ (u / np.sqrt(s))
    actual = Whitening.fit(encode, iter(CORPUS))(x)
    assert actual.dtype == np.float32
    assert np.abs(np.abs(actual) - np.abs(expected)).max() < 1e-3  # eigenvectors have no sign


@pytest.mark.parametrize("count", [0, 4])
def test_too_few_sentences(count):
    with pytest.raises(OpencseError, match=f"given {count} sentences"):
        Whitening.fit(encode, CORPUS[:count])
