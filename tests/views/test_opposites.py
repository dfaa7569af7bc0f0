from __future__ import annotations

import pytest

from opencse.views.opposites import may_say_opposite


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The road is safe.", True),
        ("The roads weren't very safe.", True),
        ("It was an easy task.", True),
        ("He is a dentist.", False),
        ("The safe road was built.", False),
        ("A safe place, she said.", False),
        ("", False),
    ],
)
def test_what_seems_to_be_said_of_something(text, expected) -> None:
    assert may_say_opposite(text) is expected
