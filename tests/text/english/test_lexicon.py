from __future__ import annotations

import pytest

from opencse.text.english import lexicon
from opencse.text.english.lexicon import inflect
from opencse.text.english.opposites import opposed_adjectives, opposed_verbs


def test_a_prefix_is_assimilated():
    for stem, negative in (("possible", "impossible"), ("legal", "illegal"), ("regular", "irregular")):
        assert lexicon.affixed("in", stem) == (stem, negative)
    assert lexicon.affixed("in", "visible") == ("visible", "invisible")
    assert lexicon.affixed("less", "harm") == ("harmful", "harmless")


def test_words_that_only_look_negated_have_no_opposite():
    negated = {
        word
        for word, _ in lexicon.opposites()
        if word
        in set(
            """invaluable infamous priceless inflammable disgruntled uncanny unkempt ruthless invest indifferent disease
            distance discover unless union united""".split()
        )
    }
    assert negated == {"priceless"}  # of "worthless", as the list has it
    for word, wrong in (("famous", "infamous"), ("valuable", "invaluable"), ("flammable", "inflammable")):
        assert lexicon.opposites()[word, "ADJ"] != wrong


def test_complementary_opposites_are_marked():
    assert lexicon.is_complementary("accept", "VERB")
    assert lexicon.is_complementary("unfinished", "ADJ")  # by its prefix
    assert not lexicon.is_complementary("rise", "VERB")
    assert not lexicon.is_complementary("bigger", "ADJ")
    assert not lexicon.is_complementary("summer", "NOUN")


RULES = ["classes", "contexts", "infinitives", "irregular_verbs", "negative_words", "topic_questions"]


@pytest.mark.parametrize("table", ["opposites", "affixes", "particles", "collocations", *RULES])
def test_no_row_is_repeated(table):
    rows = lexicon.lexicon_bytes(table).decode().strip("\n").split("\n")
    assert len(set(rows)) == len(rows)
    assert len({row.count("\t") for row in rows}) == 1


def test_verbs_of_all_lists_differ_from_their_opposites():
    entries = [(verb, entry) for verb, listed in lexicon.opposed_phrases("collocations").items() for entry in listed]
    assert all(inflect(verb, "VBD") != inflect(entry.opposite, "VBD") for verb, entry in entries)
    for phrase, listed in lexicon.opposed_phrases("particles").items():
        for entry in listed:
            assert len(entry.objects) == 1 or not entry.objects & {"yes", "no", "any"}
            assert entry.opposite != phrase


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The road is safe.", {"safe": "dangerous"}),
        ("It was an easy, cheap task.", {"easy": "difficult", "cheap": "expensive"}),
        ("A high-speed train, an old-fashioned one.", {}),
        ("Safe is its name.", {}),  # as the first word a capital hides it: one sentence more or less
        ("He is a dentist.", {}),
        ("", {}),
    ],
)
def test_words_that_have_an_opposite(text, expected) -> None:
    assert opposed_adjectives(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("They accepted the offer.", {"to accept": "to reject"}),
        ("She keeps every promise that she makes.", {"to keep": "to break"}),
        ("She keeps a dog.", {}),  # only with certain objects
        ("Prices rose in March.", {}),  # not complementary
        ("", {}),
    ],
)
def test_verbs_that_have_a_complementary_opposite(text, expected) -> None:
    assert opposed_verbs(text) == expected
