"""Rewriting by the table of claims."""

from __future__ import annotations

import random

import pytest

from opencse.text.english.claims import Claim
from opencse.text.english.lexicon import lexicon_rows
from opencse.text.english.parse import parse_without_asides
from opencse.text.syntax import load_parser
from opencse.text.views.registry import SourceRow

PARTS = Claim.parts


def written(text: str, tries: int = 40) -> dict[str, set[str]]:
    """All texts that some seed writes, by column."""
    spec, (tokens,) = Claim(), parse_without_asides(load_parser("syntax"), [text])
    drawn = [spec.rewrite(text, tokens, random.Random(seed)) for seed in range(tries)]
    return {part: {views[k][0] or "" for views in drawn} - {""} for k, part in enumerate(PARTS)}


# sentence, all rewordings, all that is opposed
BOTH_SIDES = """
At least ten people came.|A minimum of ten people came./No fewer than ten people came./Ten or more people came.|A maximum of ten people came./At most ten people came./No more than ten people came./Ten or fewer people came./Up to ten people came.
He comes only if Ann sings.|He comes on condition that Ann sings./He comes only when Ann sings.|He comes even if Ann sings./He comes regardless of whether Ann sings.
Helmets are required.|Helmets are compulsory./Helmets are mandatory.|Helmets are not required./Helmets are optional.
It was built before 1990.|It was built earlier than 1990./It was built prior to 1990.|It was built after 1990./It was built later than 1990./It was built subsequent to 1990.
The soup contains nuts.|The soup includes nuts.|The soup contains no nuts./The soup does not contain nuts./The soup is free of nuts./The soup lacks nuts.
No dogs are kept here.|No beagles are kept here./No poodles are kept here./No terriers are kept here.|Some beagles are kept here./Some dogs are kept here./Some poodles are kept here./Some terriers are kept here.
"""  # noqa: E501


@pytest.mark.parametrize("case", BOTH_SIDES.strip().split("\n"))
def test_both_sides_are_written(case: str) -> None:
    text, reworded, opposed = case.split("|")
    views = written(text)
    assert views["reworded"] == set(reworded.split("/"))
    assert views["opposed"] == views["opposed_reworded"] == set(opposed.split("/"))


OPPOSED = """
The new pump runs more quietly than the old one.|The new pump runs less quietly than the old one.
She runs faster than her brother.|She runs slower than her brother.
This shelf is twice as wide as the door.|This shelf is half as wide as the door.
The oven uses twice the power.|The oven uses half the power.
It is the most reliable printer we own.|It is the least reliable printer we own.
Orders ship unless they are on hold.|Orders ship provided that they are on hold.
All seats except for the last row are heated.|All seats including the last row are heated.
Guests may bring a friend.|Guests must not bring a friend.
Members have to sign the form.|Members need not sign the form.
Smoking is allowed on the terrace.|Smoking is forbidden on the terrace.
The lift has been out of order since 2019.|The lift has been out of order until 2019.
Two weeks later the parcel arrived.|Two weeks earlier the parcel arrived.
The warranty still covers the battery.|The warranty no longer covers the battery.
The price includes breakfast.|The price excludes breakfast.
The flat has a balcony.|The flat lacks a balcony.
There are no toilets on this floor.|There are some toilets on this floor.
Most of the rooms face the sea.|Few of the rooms face the sea.
The bakery is always closed at noon.|The bakery is never closed at noon.
"""


@pytest.mark.parametrize("case", OPPOSED.strip().split("\n"))
def test_a_claim_is_opposed(case: str) -> None:
    text, opposed = case.split("|")
    assert opposed in written(text)["opposed"]


def test_not_all_is_neither_none_nor_all() -> None:
    views = written("Not all birds can swim.", tries=80)
    assert "No birds can swim." in views["exchanged"]
    assert "All birds can swim." in views["opposed"]
    assert "No birds can swim." not in views["reworded"] | views["opposed"]


def test_an_amount_is_converted_and_changed() -> None:
    views = written("The bag weighs 5 kg.")
    assert views["reworded"] == {"The bag weighs 5 kilograms.", "The bag weighs 5,000 grams."}
    assert views["exchanged"]
    assert not views["exchanged"] & {"The bag weighs 5 kg.", "The bag weighs 5,000 grams."}


def test_what_excludes_each_other_is_exchanged_only() -> None:
    views = written("They met on Monday.")
    assert len(views.pop("exchanged")) == 6
    assert not any(views.values())


@pytest.mark.parametrize(
    "text",
    [
        "Here it is.",
        "The contract of May 17, 1990, was short.",
        "Ann sang in The Best of Both Worlds.",
        "He appeared before the court.",
        "The square was named after Queen Anne.",
        "This may or may not be true.",
        "The race took 3:31 minutes.",
        "The limit is 80 km/h.",
        "Their basic needs to us are plain.",
        "He self-contained-ish kept on.",
        "The wall was replaced with a fence.",
    ],
)
def test_other_meanings_are_left_alone(text: str) -> None:
    assert not any(written(text).values())


def test_the_table_has_every_kind_and_no_expression_on_both_sides() -> None:
    kinds = set()
    for kind, _, one, other, *_ in lexicon_rows("claims"):
        kinds.add(kind)
        assert not {side.lstrip("~") for side in one.split(" / ")} & {side.lstrip("~") for side in other.split(" / ")}
    assert kinds == set("quantifier comparative condition modality time presence entailment calendar".split())


def test_the_kind_builds_its_four_columns() -> None:
    spec = Claim()
    assert spec.columns("claim") == ("claim_reworded", "claim_opposed", "claim_opposed_reworded", "claim_exchanged")
    views = spec.open(seed=1)([SourceRow(id=0, text="All of the doors are shut."), SourceRow(id=1, text="Yes.")])
    assert views[0][1].text in ("None of the doors are shut.", "Not one of the doors are shut.")
    assert views[0][1].rule == "quantifier"
    assert [view.text for view in views[1]] == [None] * 4
