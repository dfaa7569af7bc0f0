from __future__ import annotations

import zlib

import numpy as np
import pytest
import torch

from opencse.foundation.draws import RowDraws

STEP = 0x9E3779B97F4A7C15
BITS = 2**64 - 1


def split_mix(state: int) -> int:
    """SplitMix64's finaliser in Python's integers."""
    state = ((state ^ (state >> 30)) * 0xBF58476D1CE4E5B9) & BITS
    state = ((state ^ (state >> 27)) * 0x94D049BB133111EB) & BITS
    return state ^ (state >> 31)


def test_numbers_equal_the_transcription() -> None:
    name = zlib.crc32(b"mlm chosen")
    key = int(np.random.SeedSequence([3, 7, name]).generate_state(1, np.uint64)[0])
    found = RowDraws.of([5, 2**40], seed=3, step=7).for_purpose("mlm").uniform("chosen", 4)
    for row, numbers in zip((5, 2**40), found.tolist(), strict=True):
        start = split_mix((row * STEP + key) & BITS)
        for place, number in enumerate(numbers, start=1):
            assert number == (split_mix((start + place * STEP) & BITS) >> 40) / 2**24


def test_a_row_has_the_same_numbers_in_any_share_and_width() -> None:
    whole = RowDraws.of(range(100, 110), seed=1, step=2)
    share = RowDraws.of([107, 103], seed=1, step=2)
    assert torch.equal(share.uniform("x", 3), whole.uniform("x", 9)[[7, 3], :3])
    assert torch.equal(share.of_views(2).uniform("x", 3)[3], whole.of_views(2).uniform("x", 3)[13])


@pytest.mark.parametrize(
    "other",
    [
        RowDraws.of([4], seed=2),
        RowDraws.of([4], step=1),
        RowDraws.of([5]),
        RowDraws.of([4]).for_purpose("y"),
    ],
    ids=["seed", "step", "row", "purpose"],
)
def test_other_seeds_steps_rows_and_purposes_have_other_numbers(other: RowDraws) -> None:
    numbers = RowDraws.of([4]).uniform("x", 50)
    assert not torch.isin(other.uniform("x", 50), numbers).any()


def test_numbers_are_uniform_and_independent() -> None:
    numbers = RowDraws.of(range(2000)).uniform("x", 50).double()
    assert numbers.min() >= 0
    assert numbers.max() < 1
    counts = torch.histc(numbers.float(), bins=100, min=0, max=1)
    chi_squared = ((counts - 1000) ** 2 / 1000).sum().item()
    assert 60 < chi_squared < 150  # 99 degrees of freedom
    centred = numbers - 0.5
    for left, right in ((centred[:, :-1], centred[:, 1:]), (centred[:-1], centred[1:])):
        assert abs((left * right).mean().item() * 12) < 0.02


def test_rows_that_are_unknown_follow_the_generator() -> None:
    torch.manual_seed(0)
    first = RowDraws.from_generator(3).uniform("x", 4)
    second = RowDraws.from_generator(3).uniform("x", 4)
    torch.manual_seed(0)
    assert torch.equal(RowDraws.from_generator(3).uniform("x", 4), first)
    assert not torch.equal(first, second)
