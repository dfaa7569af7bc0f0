from __future__ import annotations

import pytest

from opencse.text.english.clause import attribute_clause, is_predicate
from opencse.text.english.parse import parse_without_asides
from opencse.text.syntax import load_parser


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
