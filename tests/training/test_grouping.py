"""Length groups: a partition, and the cheapest of all."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from opencse.training.grouping import length_groups


def cost(groups, lengths, overhead):
    return sum(len(group) * lengths[group[-1]] + overhead for group in groups)


def every_split(count):
    for size in range(count):
        for cuts in itertools.combinations(range(1, count), size):
            edges = [0, *cuts, count]
            yield [range(a, b) for a, b in itertools.pairwise(edges)]


@given(st.lists(st.integers(1, 40), min_size=1, max_size=8).map(sorted), st.floats(0, 200))
def test_is_the_cheapest_partition(lengths, overhead):
    groups = length_groups(lengths, overhead)
    assert [row for group in groups for row in group] == list(range(len(lengths)))
    cheapest = min(cost(split, lengths, overhead) for split in every_split(len(lengths)))
    assert cost(groups, lengths, overhead) == pytest.approx(cheapest)


def test_limits():
    lengths = [3, 3, 5, 9, 9, 9]
    assert length_groups(lengths, 0.0) == [range(0, 2), range(2, 3), range(3, 6)]
    assert length_groups(lengths, 1e9) == [range(0, 6)]
    assert length_groups([], 10.0) == []
    with pytest.raises(ValueError, match="ascending"):
        length_groups([2, 1])
