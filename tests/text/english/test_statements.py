from __future__ import annotations

import pytest

from opencse.text.english.parse import parse_without_asides
from opencse.text.english.statements import attribute_clause, is_predicate
from opencse.text.syntax import load_parser
from opencse.text.views.registry import MainClause, SourceRow

CASES = {
    "The bridge, which was built in 1902, is safe because it was repaired.": "The bridge is safe.",
    "When the rain stopped, the old man left the house.": "The old man left the house.",
    "He missed the train, but he came home before dinner.": "He missed the train.",
    "She bought apples, pears and plums because they were cheap.": "She bought apples, pears and plums.",
    "The shop is open.": "",
    "When the rain stopped, the old man and his small grey dog left the house of the doctor in a great hurry.": "",
    "What a day": "",
    "": "",
}


@pytest.fixture(scope="module")
def cutter():
    return MainClause().open()


@pytest.mark.parametrize("text", CASES)
def test_cuts(cutter, text) -> None:
    (view,) = cutter([SourceRow(id=0, text=text)])
    assert (view.text or "") == CASES[text], view


@pytest.fixture(scope="module")
def parser():
    return load_parser("syntax")


@pytest.mark.parametrize(
    ("text", "word", "expected"),
    [
        ("He saw the dirty water of the lake.", "dirty", "The water of the lake was dirty."),
        ("They sell cheap shoes.", "cheap", "The shoes are cheap."),
        ("She has a loud voice.", "loud", "The voice is loud."),
        ("Her loud voice woke us.", "loud", "Her voice was loud."),
        ("He knows no safe place.", "safe", None),
        ("The water is dirty.", "dirty", None),  # said outright
        ("They met the late John Smith.", "late", None),  # a name is no common noun
        ("A cold and dirty river runs there.", "cold", None),  # two adjectives joined
        ("It rains.", "dirty", None),
    ],
)
def test_what_is_said_in_passing(parser, text, word, expected) -> None:
    (tokens,) = parse_without_asides(parser, [text])
    assert attribute_clause(text, tokens, word) == expected


@pytest.mark.parametrize(("text", "expected"), [("The water is dirty.", True), ("The dirty water is cold.", False)])
def test_what_is_said_outright(parser, text, expected) -> None:
    (tokens,) = parse_without_asides(parser, [text])
    assert is_predicate(tokens, "dirty") is expected
