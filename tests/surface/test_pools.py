from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from opencse.surface import edit_distance
from opencse.surface import pools as module
from opencse.surface.pools import coded, lengths, pool_distance

texts = st.lists(st.text(alphabet="ab cD\té😀 ", max_size=30), min_size=1, max_size=6)


@given(texts, st.sampled_from(["word", "character"]))
def test_same_as_pair_by_pair(texts, unit):
    strings, n = coded(texts, unit=unit), len(texts)
    anchors, pools = np.arange(n), np.tile(np.arange(n), (n, 1))
    found = pool_distance(strings, anchors, pools)
    for i in range(n):
        expected = edit_distance([texts[i]] * n, texts, unit=unit, normalised=False, workers=1)
        assert found[i].tolist() == expected.tolist()
    if unit == "word":
        assert lengths(strings).tolist() == [len(text.split()) for text in texts]


def test_missing_members():
    found = pool_distance(coded(["a b", "a c", "x"]), np.array([0, 1]), np.array([[1, -1], [-1, -1]]))
    assert found.tolist() == [[1, 0], [0, 0]]


def test_long_texts_and_many_words(monkeypatch):
    long = " ".join(f"w{i}" for i in range(3000))
    strings = coded([long, "", long.replace("w5 ", "q ")])
    assert pool_distance(strings, np.array([0]), np.array([[0, 1, 2]])).tolist() == [[0, 3000, 1]]
    words = " ".join(f"w{i}" for i in range(60_000))  # beyond the surrogates
    assert pool_distance(coded([words, "w0 w59999"]), np.array([1]), np.array([[0]])).tolist() == [[59_998]]
    monkeypatch.setattr(module, "_CODES", 10)
    strings = coded([long, "", long.replace("w5 ", "q ")])
    assert isinstance(strings[0], tuple)
    assert pool_distance(strings, np.array([0]), np.array([[0, 1, 2]])).tolist() == [[0, 3000, 1]]
