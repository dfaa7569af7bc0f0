from __future__ import annotations

import re
from collections import Counter

import pytest

from opencse.text.english.articles import indefinite_article
from opencse.text.english.lexicon import names
from opencse.text.views.registry import EntitySwap, SourceRow


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


def test_every_kind_has_a_choice():
    assert min(Counter(names().values()).values()) > 5
