from __future__ import annotations

import pytest

from opencse.text.english.one_word import possible_edits
from opencse.text.english.parse import parse_without_asides
from opencse.text.syntax import apply_edits, load_parser
from opencse.text.views.registry import NegativeWord, SourceRow

CASES = """
Every baker on our street washed his hands.|No baker on our street washed his hands.
All the runners reached the top.|None of the runners reached the top.
Someone rang the bell.|No one rang the bell.
He often walks to the office.|He rarely walks to the office.
The bridge is still closed.|The bridge is no longer closed.
The choir will sing in June.|The choir will never sing in June.
She drinks tea.|She never drinks tea.|She no longer drinks tea.|She fails to drink tea.
She needs water.|She never needs water.|She no longer needs water.
He found cracks.|He never found cracks.|He failed to find cracks.|He found no cracks.
He found several cracks.|He never found several cracks.|He failed to find several cracks.
He found only small cracks.|He never found only small cracks.|He failed to find only small cracks.
She wrote a letter.|She never wrote a letter.|She failed to write a letter.|She wrote no letter.
Ann has never lost a match.|Ann has always lost a match.
Nobody came to the party.|Somebody came to the party.
She left without her keys.|She left with her keys.
There are no trees on the hill.|There are some trees on the hill.
He no longer sings.|He still sings.
Did the choir sing in June?
They never said nothing.
On the hill stood a tower.
"""


@pytest.fixture(scope="module")
def parser():
    return load_parser("syntax")


@pytest.mark.parametrize("case", CASES.strip().split("\n"))
def test_all_that_can_be_done(parser, case) -> None:
    sentence, *expected = case.split("|")
    (tokens,) = parse_without_asides(parser, [sentence])
    assert [apply_edits(sentence, edits) for edits, _ in possible_edits(sentence, tokens)] == expected


def test_one_of_the_ways_is_drawn_by_the_seed() -> None:
    rows = [SourceRow(id=i, text="The plumber found cracks.") for i in range(30)]
    made = [[view.text for view in NegativeWord().open(seed=seed)(rows)] for seed in (1, 1, 2)]
    assert made[0] == made[1] != made[2]
    assert set(made[0]) == {
        "The plumber never found cracks.",
        "The plumber failed to find cracks.",
        "The plumber found no cracks.",
    }


def test_none_where_there_is_no_place(parser) -> None:
    (view,) = NegativeWord().open()([SourceRow(id=0, text="On the hill stood a tower.")])
    assert (view.text, view.rule) == (None, "no place for it")
