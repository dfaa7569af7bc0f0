from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencse.text.surface import align


def back_trace(reference: str, hypothesis: str, order: str = "CSID") -> tuple[int, int, int, int]:
    """S, D, I, C by the textbook: the whole matrix, then back from the end; `order` says what is preferred."""
    r, h = reference.lower().split(), hypothesis.lower().split()
    d = [[max(i, j) if i == 0 or j == 0 else 0 for j in range(len(h) + 1)] for i in range(len(r) + 1)]
    for i in range(1, len(r) + 1):
        for j in range(1, len(h) + 1):
            d[i][j] = min(d[i - 1][j - 1] + (r[i - 1] != h[j - 1]), d[i][j - 1] + 1, d[i - 1][j] + 1)
    i, j, counts = len(r), len(h), dict.fromkeys("SDIC", 0)
    while i or j:
        same = i > 0 and j > 0 and r[i - 1] == h[j - 1]
        open_steps = {
            "C": same and d[i][j] == d[i - 1][j - 1],
            "S": i > 0 and j > 0 and not same and d[i][j] == d[i - 1][j - 1] + 1,
            "I": j > 0 and d[i][j] == d[i][j - 1] + 1,
            "D": i > 0 and d[i][j] == d[i - 1][j] + 1,
        }
        step = next(step for step in order if open_steps[step])
        counts[step] += 1
        i, j = i - (step in "CSD"), j - (step in "CSI")
    return counts["S"], counts["D"], counts["I"], counts["C"]


texts = st.lists(
    st.sampled_from(["a", "b", "c", "d", "E", "e", "longer-than-eight-bytes", "longer-than-eight-bytez", "é"]),
    max_size=14,
)
pairs = st.lists(st.tuples(texts, texts), max_size=40)


@settings(max_examples=150, deadline=None)
@given(pairs)
def test_counts_are_those_of_the_literal_back_trace(words):
    a, b = [" ".join(left) for left, _ in words], [" ".join(right) for _, right in words]
    found = align(a, b)
    counts = list(zip(found.substitutions, found.deletions, found.insertions, found.correct, strict=True))
    assert counts == [back_trace(x, y) for x, y in zip(a, b, strict=True)]


def test_long_and_short_pairs_side_by_side():
    chance = np.random.default_rng(0)
    lengths = [0, 1, 2, 30, 61, 62, 63, 64, 126, 127, 128, 129, 300]
    a = [" ".join(chance.choice(list("abcdef"), n)) for n in lengths]
    b = [" ".join(chance.choice(list("abcdef"), n)) for n in reversed(lengths)]
    found = align(a, b)
    assert list(zip(found.substitutions, found.deletions, found.insertions, found.correct, strict=True)) == [
        back_trace(x, y) for x, y in zip(a, b, strict=True)
    ]


def test_many_pairs_equal_one_by_one():
    chance = np.random.default_rng(1)
    a = [" ".join(chance.choice(list("abc"), n)) for n in chance.integers(0, 9, 70_000)]
    b = a[::-1]
    together = align(a, b).match_error_rate
    for i in chance.integers(0, len(a), 50):
        assert together[i] == align([a[i]], [b[i]]).match_error_rate[0]


TIES = {("a b a", "b c a b"): (2, 0, 1, 1), ("a b a", "b a a"): (2, 0, 0, 1)}
"""Pairs with several shortest alignments, and S, D, I, C of the one that OssCSE's Table 2 comes from."""


def test_ties_are_broken_in_the_order_match_substitution_insertion_deletion():
    for (reference, hypothesis), counts in TIES.items():
        found = align([reference], [hypothesis])
        assert (*found.substitutions, *found.deletions, *found.insertions, *found.correct) == counts


def test_every_other_order_fails_on_one_of_the_ties():
    """A match and a substitution are never both possible, so that their order says nothing."""
    passing = {
        "".join(order)
        for order in itertools.permutations("CSID")
        if all(back_trace(*pair, "".join(order)) == counts for pair, counts in TIES.items())
    }
    assert passing == {"CSID", "SCID"}


def test_five_thousand_words():
    a = " ".join(f"w{k % 700}" for k in range(5000))
    b = " ".join(f"w{k % 701}" for k in range(4900))
    found = align([a], [b])
    assert found.correct[0] + found.substitutions[0] + found.deletions[0] == 5000
    assert found.correct[0] + found.substitutions[0] + found.insertions[0] == 4900


def test_empty_and_unequal_columns():
    assert len(align([], []).match_error_rate) == 0
    assert align(["", "a", ""], ["", "", "b c"]).match_error_rate.tolist() == [0.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="2 references, but 1"):
        align(["a", "b"], ["a"])


characters = st.one_of(
    st.characters(),
    st.sampled_from("aAzZ@[`{ \t\n\x00\x1c\x1b\x7f\x85\xa0\u2003\u3000\ufefféÉßẞİıΣσςŁłДд中𐐀🙂\ud800"),
)


@settings(max_examples=400, deadline=None)
@given(st.lists(st.text(characters, max_size=25), max_size=6), st.booleans())
def test_words_are_those_of_str_split(column, lower):
    words = [(text.lower() if lower else text).split() for text in column]
    assert align(column, [""] * len(column), lower=lower).deletions.tolist() == [len(text) for text in words]
    flat = [word for text in words for word in text]  # each word alone, beside the next as it was written
    written = [word for text in column for word in text.split()]
    same = align(flat, [*written[1:], *written[:1]], lower=lower).correct
    assert same.tolist() == [int(a == b) for a, b in zip(flat, [*flat[1:], *flat[:1]], strict=True)]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.text(characters, max_size=40), max_size=8))
def test_distance_is_that_of_jiwer_and_lines_may_break(column):
    jiwer = pytest.importorskip("jiwer")
    a, b = ([" ".join(text.split()) or "x" for text in side] for side in (column, column[::-1]))
    expected = [
        (out.substitutions + out.deletions + out.insertions) if x != y else 0
        for x, y in zip(a, b, strict=True)
        for out in [jiwer.process_words(x, y)]
    ]
    assert align(a, b, lower=False).errors.tolist() == expected
    broken = [text.replace(" ", "\n") for text in a]
    assert align(broken, b, lower=False).errors.tolist() == expected


def test_every_kind_of_white_space_cuts():
    spaces = [chr(c) for c in range(0x3100) if chr(c).isspace()]
    column = [f"{space}a{space}{space}b{space}" for space in spaces] + ["a\x00b \x01 c"]
    assert align(column, [""] * len(column)).deletions.tolist() == [len(text.split()) for text in column]


@pytest.mark.parametrize("size", range(1, 27))
def test_words_that_differ_in_one_letter_differ(size):
    word = "abcdefghijklmnopqrstuvwxyz"[:size]
    others = [word[:k] + "-" + word[k + 1 :] for k in range(size)] + [word + "\0", word + "a", word[:-1]]
    assert align([word] * len(others), others).correct.sum() == 0
    assert align([word.upper()], [word]).correct.tolist() == [1]
