from __future__ import annotations

import pytest

from opencse.text.english.lexicon import article_edits, indefinite_article, names
from opencse.text.syntax import Token, apply_edits

AN = """
apple easy ice old ugly umbrella uninteresting unimportant unintended unidentified uncle urban utter usher upper
hour hourly honest honorary heir X-ray MP NBC F-16 8 8th 80 85,000 11 11th 18 18,000 1850 11000 eighth eleven onerous
unanswered Indian Austrian Uzbek Emmy
"""
A = """
house red union unique uniform united universal unilateral unanimous European euro ewe one one-sided once useful used
usual utility utopian uranium Ugandan Ukrainian ubiquitous year 1 7 10 12 180 1,800 118 110 ninth US UN
NATO history hotel Uruguayan Utah
"""


@pytest.mark.parametrize(("words", "article"), [(AN, "an"), (A, "a")])
def test_words_spoken_with_a_vowel_or_a_consonant(words: str, article: str) -> None:
    assert [word for word in words.split() if indefinite_article(word) != article] == []


def test_names_that_begin_with_u() -> None:
    found = {name: indefinite_article(name) for name in names() if name.startswith(("U", "Eu"))}
    assert {name for name, article in found.items() if article == "an"} == {"Urdu", "Uzbekistan"}


def tokens(text: str, *words: str) -> list[Token]:
    out, start = [], 0
    for word in words:
        start = text.index(word, start)
        end = start + len(word)
        out.append(
            Token(text=word, start=start, end=end, lemma=word, tag="NN", pos="NOUN", head=len(out), relation="ROOT")
        )
        start = end
    return out


@pytest.mark.parametrize(
    ("text", "words", "new", "expected"),
    [
        ("An hour", ("An", "hour"), "minute", "A hour"),
        ("a  red car", ("a", "red"), "honest", "an  red car"),
        ("A RED CAR", ("A", "RED"), "old", "An RED CAR"),
        ("a house", ("a", "house"), "union", "a house"),
        ("the house", ("the", "house"), "hour", "the house"),
        ("a (red) car", ("a", "car"), "old car", "a (red) car"),
        ("house", ("house",), "hour", "house"),
    ],
)
def test_the_article_before_a_replaced_word(text: str, words: tuple[str, ...], new: str, expected: str) -> None:
    assert apply_edits(text, article_edits(text, tokens(text, *words), len(words) - 1, new)) == expected
