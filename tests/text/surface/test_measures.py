from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from opencse.foundation.errors import OpencseError
from opencse.text.surface import lexical_overlap, match_error_rate

column = st.lists(st.lists(st.sampled_from(list("abcB")), max_size=9).map(" ".join), min_size=1, max_size=20)


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


def test_overlap_of_no_words():
    assert lexical_overlap(["", " "], ["", ""]).tolist() == [1.0, 1.0]
    assert lexical_overlap([], []).tolist() == []


def test_rates_lie_between_none_and_all():
    rates = match_error_rate(["the dog runs", "the dog runs", "one"], ["the dog runs", "the dog does not run", "two"])
    assert rates.tolist() == [0.0, 3 / 5, 1.0]


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
    variants = re.findall(r"\([iv]+\) (\w+): (.*?)\s*\(UnSup: .*?MER: ([\d.]+)\)", " ".join(example[2].split()))
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
