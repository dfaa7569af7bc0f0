"""The number of rows that the workers of a build have built, counted within units that are not finished."""

from __future__ import annotations

import multiprocessing


class BuiltRows:
    """The rows that the worker processes of this machine have built.

    Each unit has a place of its own in shared memory, so that no worker waits for another. It reaches the workers with
    the task that they are started with; it cannot be sent to them later.

    Args:
        rows: Number of rows of the build.
        unit: Number of rows of a unit.
    """

    def __init__(self, rows: int, unit: int) -> None:
        self._unit = unit
        self._places = multiprocessing.get_context("spawn").RawArray("d", -(-rows // unit))

    def add(self, row: int, count: float) -> None:
        """Count rows of the unit that begins with `row`; a row of which half of the columns are built counts half."""
        self._places[row // self._unit] += count

    @property
    def count(self) -> int:
        """Number of rows that have been built."""
        return round(sum(self._places))
