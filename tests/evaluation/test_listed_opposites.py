"""Opposites seen and unseen: which pairs of texts turn on a listed one."""

import pytest

from opencse.errors import OpencseError
from opencse.evaluation import Triplet, TripletSet, development_set
from opencse.evaluation.listed_opposites import group_by_listed, inflected_opposites, is_listed, listed_pairs

OPPOSITES = inflected_opposites(
    [("rise", "fall", "VERB"), ("big", "small", "ADJ"), ("happy", "sad", "ADJ"), ("enemy", "friend", "NOUN")]
)


@pytest.mark.parametrize(
    ("first", "second", "listed"),
    [
        ("Prices rose.", "Prices fell.", True),
        ("Prices have fallen.", "Prices have risen.", True),
        ("It was bigger.", "It was smaller!", True),
        ("the happiest day", "the saddest day", True),
        ("our enemies", "our friends", True),
        ("Prices rose.", "Prices fall.", False),
        ("big and small", "small and big", False),
        ("a big dog", "a big small dog", False),
        ("It was hot.", "It was cold.", False),
    ],
)
def test_listed_in_either_direction_and_the_same_form(first, second, listed):
    assert is_listed(first, second, OPPOSITES) is listed
    assert is_listed(second, first, OPPOSITES) is listed


def triplets(*rows):
    return TripletSet(
        name="toy",
        triplets=tuple(
            Triplet(id=str(i), anchor=a, positive=p, negative=n, groups={"kind": kind})
            for i, (kind, a, p, n) in enumerate(rows)
        ),
    )


def test_triplets_are_grouped_and_those_of_other_kinds_left_out():
    data = triplets(
        ("verb", "Prices rise.", "Prices go up.", "Prices fall."),
        ("adjective", "It isn't big.", "It is small.", "It is huge."),
        ("adjective", "It is hot.", "It is warm.", "It is cold."),
        ("number", "two", "a pair", "three"),
    )
    found = group_by_listed(data, OPPOSITES)
    assert found.name == "toy-opposites"
    assert [each.groups["opposites"] for each in found.triplets] == ["seen", "seen", "unseen"]
    with pytest.raises(OpencseError, match="no triplet of the kinds noun"):
        group_by_listed(data, OPPOSITES, kinds=["noun"])


def test_the_written_set_has_both():
    found = group_by_listed(development_set("meaning"))
    counts = {value: len(rows) for (column, value), rows in found.groups().items() if column == "opposites"}
    assert sum(counts.values()) == 129
    assert min(counts.values()) >= 30


def test_every_listed_pair_is_found():
    assert all(is_listed(f"it {a} so", f"it {b} so") for a, b, _ in listed_pairs())
