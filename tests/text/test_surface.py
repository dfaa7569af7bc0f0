from __future__ import annotations

import csv
import gzip
import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from opencse.foundation.errors import OpencseError
from opencse.text.surface import (
    consistency_opposition,
    edit_units,
    lexical_overlap,
    match_error_rate,
)


def back_trace(reference: str, hypothesis: str, order: str = "CSID") -> tuple[int, int, int, int]:
    """S, D, I, C by the textbook: the whole matrix, then back from the end; `order` says what is preferred."""
    r, h = reference.lower().split(), hypothesis.lower().split()
    d = [
        [max(i, j) if i == 0 or j == 0 else 0 for j in range(len(h) + 1)] for i in range(len(r) + 1)
    ]
    for i in range(1, len(r) + 1):
        for j in range(1, len(h) + 1):
            d[i][j] = min(
                d[i - 1][j - 1] + (r[i - 1] != h[j - 1]), d[i][j - 1] + 1, d[i - 1][j] + 1
            )
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
    st.sampled_from(
        ["a", "b", "c", "d", "E", "e", "longer-than-eight-bytes", "longer-than-eight-bytez", "é"]
    ),
    max_size=14,
)
pairs = st.lists(st.tuples(texts, texts), max_size=40)


@settings(max_examples=150, deadline=None)
@given(pairs)
def test_rates_are_those_of_the_literal_back_trace(words):
    a, b = [" ".join(left) for left, _ in words], [" ".join(right) for _, right in words]
    counts = [back_trace(x, y) for x, y in zip(a, b, strict=True)]
    assert match_error_rate(a, b).tolist() == [
        (s + d + i) / max(1, s + d + i + c) for s, d, i, c in counts
    ]


TIES = {("a b a", "b c a b"): 3 / 4, ("a b a", "b a a"): 2 / 3}
"""Pairs with several shortest alignments, and the rate by the one that OssCSE's Table 2 comes from."""


def test_ties_are_broken_in_order_and_columns_may_be_empty_but_not_unequal():
    for (reference, hypothesis), rate in TIES.items():
        assert match_error_rate([reference], [hypothesis]) == [rate]
    assert len(match_error_rate([], [])) == 0
    assert match_error_rate(["", "a", ""], ["", "", "b c"]).tolist() == [0.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="2 references, but 1"):
        match_error_rate(["a", "b"], ["a"])


column = st.lists(
    st.lists(st.sampled_from(list("abcB")), max_size=9).map(" ".join), min_size=1, max_size=20
)


@settings(max_examples=60, deadline=None)
@given(column)
def test_overlap_counts_shared_words_over_the_longer_length(a):
    b = a[::-1]
    expected = []
    for x, y in zip(a, b, strict=True):
        left, right = x.lower().split(), y.lower().split()
        shared = sum(min(left.count(word), right.count(word)) for word in set(left))
        expected.append(shared / max(len(left), len(right)) if left or right else 1.0)
    assert np.allclose(lexical_overlap(a, b), expected)
    assert np.allclose(lexical_overlap(a, a), 1.0)
    assert lexical_overlap([], []).tolist() == []


def test_example_1_of_osscse(data_folder: Path):
    """The printed values are cut, not rounded, except the paraphrase's: 10/14 under the order that gives Table 2."""
    paper = data_folder.parent / "papers" / "osscse.txt"
    if not paper.exists():
        pytest.skip("the text of the paper is not there")
    example = re.search(
        r"Example 1 Sentence Transformations of “(.*?)”(.*?)\nNegation vs",
        paper.read_text().replace("-\n", ""),
        re.DOTALL,
    )
    assert example is not None
    source = " ".join(example[1].split())
    variants = re.findall(
        r"\([iv]+\) (\w+): (.*?)\s*\(UnSup: .*?MER: ([\d.]+)\)", " ".join(example[2].split())
    )
    printed = {name: (text, float(value)) for name, text, value in variants}
    assert len(printed) == 6
    for name, (text, value) in printed.items():
        rate = match_error_rate([source], [text])[0]
        if name == "Paraphrase":
            assert rate == pytest.approx(10 / 14)
        else:
            assert int(rate * 100) / 100 == pytest.approx(value), name


@pytest.mark.parametrize("measure", [match_error_rate, lexical_overlap])
def test_two_single_texts_are_refused_and_not_compared_letter_by_letter(measure):
    with pytest.raises(OpencseError, match="lists of texts"):
        measure("abc", "abd")
    assert measure(["abc"], ["abc"]).shape == (1,)


@pytest.mark.parametrize("pair", [136, 304])
def test_one_pair_read_the_other_way_gives_the_published_count(data_folder: Path, pair: int):
    with gzip.open(
        data_folder / "eval/STS15/test.tsv.gz", "rt", encoding="utf-8", newline="\n"
    ) as file:
        rows = list(csv.DictReader(file, delimiter="\t", quoting=csv.QUOTE_NONE))
    rows = [row for row in rows if row["subset"] == "answers-students"]
    sides = [[row[f"{side}_senteval"] for row in rows] for side in ("sentence1", "sentence2")]
    sides[0][pair], sides[1][pair] = sides[1][pair], sides[0][pair]
    split = consistency_opposition(*sides, [float(row["score"]) for row in rows])
    assert (split.consistent.sum(), (~split.consistent).sum()) == (494, 256)


def test_ties_are_opposed_and_no_pairs_are_no_error():
    a, b = ["a b c d"] * 4, ["a b c d", "a b c x", "a b x x", "w x y z"]
    split = consistency_opposition(a, b, [5.0, 2.0, 2.0, 0.0])
    assert split.median_score == 2.0
    assert split.consistent.tolist() == [True, False, False, True]
    split = consistency_opposition([], [], [])
    assert len(split.consistent) == 0
    assert np.isnan(split.median_score)


texts = st.lists(
    st.text(alphabet="ab cD\tÉé\n\u3000😀 \ud800", max_size=30), min_size=1, max_size=6
)


@settings(deadline=None)
@given(texts)
def test_same_as_pair_by_pair(texts):
    cut = edit_units(texts)
    found = [[Levenshtein.distance(a, b) for b in cut] for a in cut]
    units = [text.lower().split() for text in texts]
    assert found == [[Levenshtein.distance(a, b) for b in units] for a in units]
    assert list(map(len, cut)) == list(map(len, units))
