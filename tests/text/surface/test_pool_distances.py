from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from opencse.text.surface.alignment import pool_distance, symbols

texts = st.lists(st.text(alphabet="ab cD\tÉé\n\u3000😀 \ud800", max_size=30), min_size=1, max_size=6)


@settings(deadline=None)  # the first call compiles
@given(texts, st.sampled_from(["word", "character"]), st.booleans())
def test_same_as_pair_by_pair(texts, unit, lower):
    cut, n = symbols(texts, unit=unit, lower=lower), len(texts)
    found = pool_distance(cut, np.arange(n), np.tile(np.arange(n), (n, 1)))
    folded = [text.lower() if lower else text for text in texts]
    units = [text.split() if unit == "word" else list(text) for text in folded]
    assert found.tolist() == [[Levenshtein.distance(a, b) for b in units] for a in units]
    assert cut.lengths.tolist() == [len(one) for one in units]


def test_missing_members():
    found = pool_distance(symbols(["a b", "a c", "x"]), np.array([0, 1]), np.array([[1, -1], [-1, -1]]))
    assert found.tolist() == [[1, 0], [0, 0]]


@pytest.mark.parametrize("longest", [63, 64, 65, 128, 129, 1000])
def test_long_texts(longest):
    chance = random.Random(longest)
    words = [[chance.choice("abcdefgh") for _ in range(n)] for n in (longest, longest, longest - 1, 1, 0, 70)]
    n = len(words)
    found = pool_distance(symbols([" ".join(one) for one in words]), np.arange(n), np.tile(np.arange(n), (n, 1)))
    assert found.tolist() == [[Levenshtein.distance(a, b) for b in words] for a in words]


def test_words_that_share_a_slot():
    words = [f"w{i}" for i in range(60)]
    lists = [words, words[::-1], words[30:] + words[:30], ["x"] * 60]
    found = pool_distance(symbols([" ".join(one) for one in lists]), np.array([0]), np.array([[0, 1, 2, 3]]))
    assert found[0].tolist() == [Levenshtein.distance(words, other) for other in lists]
