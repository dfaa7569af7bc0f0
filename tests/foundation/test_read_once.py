"""One reading for several looks."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

import pytest

from opencse.foundation.read_once import ReadOnce


class Source:
    """Counts how often it is read, and how many items it gave."""

    def __init__(self, length: int) -> None:
        self.length = length
        self.readings = 0
        self.given = 0

    def read(self) -> Iterator[int]:
        self.readings += 1
        for item in range(self.length):
            self.given += 1
            yield item


def test_looks_at_the_beginning_cost_no_reading() -> None:
    source = Source(100)
    items = ReadOnce(source.read, keep=10)
    assert list(islice(items, 3)) == [0, 1, 2]
    assert list(islice(items, 8)) == list(range(8))
    assert list(items) == list(range(100))
    assert (source.readings, source.given) == (1, 100)
    assert list(islice(items, 10)) == list(range(10))
    assert source.readings == 1


def test_a_second_complete_pass_reads_again() -> None:
    source = Source(100)
    items = ReadOnce(source.read, keep=10)
    for _ in range(2):
        assert list(items) == list(range(100))
    assert source.readings == 2


def test_a_pass_that_is_given_up_beyond_the_beginning() -> None:
    source = Source(100)
    items = ReadOnce(source.read, keep=10)
    assert list(islice(items, 30)) == list(range(30))
    assert list(items) == list(range(100))
    assert source.readings == 2


@pytest.mark.parametrize("length", [0, 1, 10])
def test_a_short_source_is_read_once(length: int) -> None:
    source = Source(length)
    items = ReadOnce(source.read, keep=11)
    for _ in range(3):
        assert list(items) == list(range(length))
    assert source.readings == 1


def test_passes_may_overlap() -> None:
    items = ReadOnce(Source(30).read, keep=5)
    first, second = iter(items), iter(items)
    pairs = list(zip(first, second, strict=True))
    assert pairs == [(number, number) for number in range(30)]


def test_a_failure_is_no_end() -> None:
    def fails() -> Iterator[int]:
        yield 1
        raise OSError

    items = ReadOnce(fails)
    for _ in range(2):
        with pytest.raises(OSError):
            list(items)
