from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from opencse.encoder.prompts import Frame
from opencse.training.batches import Assembler, BatchSampler, ViewTokens, _with_repetitions, length_groups

FRAME = Frame((101,), (102,))


class Store:
    def __init__(self, *lengths: int) -> None:
        self.rows = [np.arange(1, n + 1) for n in lengths]

    def ids(self, source: int, row: int) -> np.ndarray:
        return self.rows[row]


def test_repetition_adds_up_to_its_share_in_place_and_anew() -> None:
    """ESimCSE's code: of L tokens, special ones included, a number below min(10, ⌊share · L⌋) is repeated once."""
    torch.manual_seed(0)
    content = np.arange(18)
    counts = set()
    for _ in range(300):
        found = _with_repetitions(content, 0.32, 2)
        values, times = np.unique(found, return_counts=True)
        np.testing.assert_array_equal(values, content)
        assert list(found) == sorted(found)
        assert set(times) <= {1, 2}
        counts.add(len(found) - 18)
    assert counts == {0, 1, 2, 3, 4, 5}  # ⌊0.32 · 20⌋ = 6


@pytest.mark.parametrize(("length", "most"), [(1, 0), (2, 0), (5, 1), (30, 9), (200, 9)])
def test_short_texts_stay_and_long_ones_gain_nine_tokens_at_most(length: int, most: int) -> None:
    torch.manual_seed(1)
    found = {len(_with_repetitions(np.arange(length), 0.32, 2)) - length for _ in range(200)}
    assert max(found) == most
    view = ViewTokens(0, FRAME, length, None, 0.32)
    assert view.longest == length + 2 + most


def test_rows_are_padded_to_the_longest_and_padding_is_masked() -> None:
    batch = Assembler(Store(3, 5), {"anchor": ViewTokens(0, FRAME, 4, None)}, 0)([0, 1])
    ((ids, mask, _),) = batch.passes[0].groups
    assert ids.tolist() == [[101, 1, 2, 3, 102, 0], [101, 1, 2, 3, 4, 102]]
    assert mask.tolist() == [[1, 1, 1, 1, 1, 0], [1, 1, 1, 1, 1, 1]]


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


def test_limits_of_length_groups():
    lengths = [3, 3, 5, 9, 9, 9]
    assert length_groups(lengths, 0.0) == [range(0, 2), range(2, 3), range(3, 6)]
    assert length_groups(lengths, 1e9) == [range(0, 6)]
    assert length_groups([], 10.0) == []
    with pytest.raises(ValueError, match="ascending"):
        length_groups([2, 1])


def test_every_epoch_and_every_seed_has_an_order_of_its_own():
    orders = {
        (seed, epoch): tuple(np.concatenate([sampler.batch(4 * epoch + step) for step in range(4)]).tolist())
        for seed in (0, 1)
        for sampler in [BatchSampler(32, 8, seed)]
        for epoch in (0, 1)
    }
    assert len(set(orders.values())) == 4
    assert all(sorted(order) == list(range(32)) for order in orders.values())
