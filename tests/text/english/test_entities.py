from __future__ import annotations

import re

import pytest

from opencse.text.english.lexicon import indefinite_article, names
from opencse.text.views.registry import EntitySwap, NumberSwap, SourceRow


def made(spec, text, rows=30):
    return [view.text for view in spec.open(seed=3)([SourceRow(id=i, text=text) for i in range(rows)])]


def test_another_name_of_its_kind():
    for text in made(EntitySwap(), "An Italian painter moved to the house."):
        article, name = re.fullmatch(r"(An?) (\w+) painter moved to the house\.", text).groups()
        assert names()[name] == "nationality"
        assert article.lower() == indefinite_article(name)
    assert {names()[text.split()[-1].rstrip(".")] for text in made(EntitySwap(), "He lives in France.")} == {"country"}
    assert all("June" not in text for text in made(EntitySwap(), "He left on June 30, and was back before June ended."))


@pytest.mark.parametrize(
    "text", ["He sang.", "He lives in New England.", "She read the Paris Review.", "A French-German film."]
)
def test_names_that_stay(text):
    assert made(EntitySwap(), text, 3) == [None] * 3


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        ("He was born in 1950.", r"He was born in (19[1-9]\d)\."),
        ("It lasted from 1950 to 1960.", r"It lasted from (\d{4}) to (\d{4})\."),
        ("The lake is 40 metres deep.", r"The lake is (\d\d) metres deep\."),
        ("She bought three apples.", r"She bought (\w+) apples\."),
        ("The city has 12,400 inhabitants.", r"The city has (\d{1,2},\d00) inhabitants\."),
        ("It opened in the 19th century.", r"It opened in the (\d+)(?:st|nd|rd|th) century\."),
        ("About 30 percent agreed.", r"About (\d\d?) percent agreed\."),
    ],
)
def test_another_number_of_like_size(text, pattern):
    outputs = made(NumberSwap(), text)
    assert all(one != text and re.fullmatch(pattern, one) for one in outputs)
    assert len(set(outputs)) > 2


def test_years_keep_their_order():
    for text in made(NumberSwap(), "It lasted from 1950 to 1960."):
        first, last = map(int, re.findall(r"\d{4}", text))
        assert first < last


@pytest.mark.parametrize(
    "text", ["They won 3-2.", "It starts at 10:30.", "One man came.", "Apollo 11 landed.", "He sang."]
)
def test_numbers_that_stay(text):
    assert made(NumberSwap(), text, 3) == [None] * 3


def test_the_article_follows_the_number():
    outputs = made(NumberSwap(), "It was an 80 page book.")
    assert all((" an " in text) == (" 8" in text or " 11 " in text or " 18 " in text) for text in outputs)
    assert any(" a " in text for text in outputs)
