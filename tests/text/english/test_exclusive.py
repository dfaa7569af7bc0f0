"""Numbers and opposites are exchanged only where both sentences cannot be true."""

from __future__ import annotations

import pytest

from opencse.text.english.exclusive import ExclusiveNumberSwap, ExclusiveOpposite, NegatedComplement
from opencse.text.views.registry import SourceRow

NUMBER, OPPOSITE = ExclusiveNumberSwap(), ExclusiveOpposite()


def rewritten(spec, sentence: str) -> str | None:
    (view,) = spec.open(seed=1)([SourceRow(id=0, text=sentence)])
    return view.text


@pytest.mark.parametrize(
    ("spec", "sentence", "kept", "changed"),
    [
        (NUMBER, "The hall has 40 windows.", "The hall has ", "40"),
        (OPPOSITE, "The lock is safe.", "The lock is dangerous.", "safe"),
        (
            OPPOSITE,
            "The offer was rejected by the council.",
            "The offer was accepted by the council.",
            "rejected",
        ),
        (
            OPPOSITE,
            "The tool is an unofficial client.",
            "The tool is an official client.",
            "unofficial",
        ),
    ],
)
def test_what_cannot_be_true_as_well_is_exchanged(
    spec, sentence: str, kept: str, changed: str
) -> None:
    found = rewritten(spec, sentence)
    assert found.startswith(kept)
    assert changed not in found


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (NUMBER, "The hall has more than 40 windows."),  # more than 30 is true as well
        (NUMBER, "It runs on Python 2."),
        (NUMBER, "The tool supports version 3.7."),
        (NUMBER, "They played at the 2015 festival."),
        (NUMBER, "The hall was let to the 82nd Brigade."),
        (NUMBER, "It has been tested with 2 and 3 workers."),
        (NUMBER, "A table with 40 windows."),
        (NUMBER, "The price rose from 30 euros to 40 euros."),
        (NUMBER, "The two sides agreed."),
        (NUMBER, "She published a book on 4 June 1921."),  # and another one on another day
        (NUMBER, "The tower was built in 1921."),
        (OPPOSITE, "Binary arguments are printed by the client."),  # so may be all others
        (OPPOSITE, "Swimwear is excluded from returns."),  # "included from" is no English
        (OPPOSITE, "It is present from March to May."),
        (OPPOSITE, "The castle is a modern building."),
        (OPPOSITE, "The door is somewhat open."),
        (OPPOSITE, "The guard said that the door is open."),
        (OPPOSITE, "The lock is safe and cheap."),
        (OPPOSITE, "The page is accessible on weekdays."),
    ],
)
def test_what_leaves_room_for_others_or_does_not_fit_stays(spec, sentence: str) -> None:
    assert rewritten(spec, sentence) is None


@pytest.mark.parametrize(
    ("text", "reworded"),
    [
        ("The motor of the pump is silent.", None),
        ("The chairs in the hall were new.", None),
        ("The visitors were happy.", None),
        ("The back door is open.", "closed"),
        ("The result of the test is valid.", "invalid"),
        ("The old bridge is not safe.", "dangerous"),
    ],
)
def test_gradual_opposites_are_not_negated_into_each_other(text, reworded) -> None:
    found = rewritten(NegatedComplement(), text)
    assert (found is None) == (reworded is None)
    assert reworded is None or reworded in found
