"""Rewriting by the table of claims."""

import random

import pytest
from claim import Claims, expressions, rewrite_claim

from opencse.text.views.registry import SourceRow


def written(text, part, tries=40):
    return {found[part] for seed in range(tries) if part in (found := rewrite_claim(text, random.Random(seed))[1])}


@pytest.mark.parametrize(
    ("text", "reworded", "opposed"),
    [
        (
            "At least ten people came.",
            {"No fewer than ten people came.", "Ten or more people came.", "A minimum of ten people came."},
            {
                "At most ten people came.",
                "No more than ten people came.",
                "Ten or fewer people came.",
                "A maximum of ten people came.",
                "Up to ten people came.",
            },
        ),
        (
            "He comes only if Ann sings.",
            {"He comes only when Ann sings.", "He comes on condition that Ann sings."},
            {"He comes even if Ann sings.", "He comes regardless of whether Ann sings."},
        ),
        (
            "Helmets are required.",
            {"Helmets are mandatory.", "Helmets are compulsory."},
            {"Helmets are optional.", "Helmets are not required.", "Helmets are a matter of choice."},
        ),
        (
            "It was built before 1990.",
            {"It was built prior to 1990.", "It was built earlier than 1990."},
            {"It was built after 1990.", "It was built later than 1990.", "It was built subsequent to 1990."},
        ),
        (
            "The soup contains nuts.",
            {"The soup has in it nuts."},
            {
                "The soup contains no nuts.",
                "The soup lacks nuts.",
                "The soup does not contain nuts.",
                "The soup is free of nuts.",
            },
        ),
    ],
)
def test_both_sides_are_written(text, reworded, opposed):
    assert written(text, "reworded") == reworded
    assert written(text, "opposed") == opposed
    assert written(text, "opposed_reworded") == opposed


def test_an_amount_is_converted_and_changed():
    assert written("The bag weighs 5 kg.", "reworded") == {
        "The bag weighs 5 kilograms.",
        "The bag weighs 5,000 grams.",
    }
    exchanged = written("The bag weighs 5 kg.", "exchanged")
    assert exchanged
    assert not exchanged & {"The bag weighs 5 kg.", "The bag weighs 5,000 grams."}


def test_what_excludes_each_other_is_exchanged_only():
    found = rewrite_claim("They met on Monday.", random.Random(0))[1]
    assert list(found) == ["exchanged"]
    assert found["exchanged"] != "They met on Monday."


@pytest.mark.parametrize("text", ["Nothing here.", "They not must go", "You would have to go.", "He contained-ish"])
def test_other_meanings_are_left_alone(text):
    assert "reworded" not in rewrite_claim(text, random.Random(0))[1]


def test_the_table_has_every_kind_and_no_expression_on_both_sides():
    kinds = {each.kind for each in expressions()}
    assert kinds == {"quantifier", "comparative", "condition", "modality", "time", "presence", "calendar"}
    for each in expressions():
        assert not set(each.same) & set(each.opposed), each.same


def test_the_kind_builds_its_four_columns():
    spec = Claims()
    assert spec.columns("claim") == ("claim_reworded", "claim_opposed", "claim_opposed_reworded", "claim_exchanged")
    views = spec.open(seed=1)([SourceRow(id=0, text="All of the doors are shut."), SourceRow(id=1, text="Yes.")])
    assert views[0][1].text in ("None of the doors are shut.", "Not one of the doors are shut.")
    assert [view.text for view in views[1]] == [None] * 4
