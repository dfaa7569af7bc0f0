from __future__ import annotations

import pytest

from opencse.text.english.opposites import opposed_adjectives, opposed_verbs


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
