"""Random numbers of training rows: each is a function of seed, step, row and purpose.

A generator gives its numbers in the order in which they are asked for, so a row's would depend on
the rows before it, and on the number of processes. Here a row has the same numbers wherever it is
computed.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

_STEP = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, eq=False)
class RowDraws:
    """Uniform random numbers for some rows.

    Attributes:
        rows: The numbers of the rows, int64, (n,).
        seed: Seed of the run, from 0.
        step: Number of the training step, from 0.
        purpose: What the numbers are for. Other purposes get other numbers.

    Example:
        >>> both, second = RowDraws.of([3, 8], seed=1), RowDraws.of([8], seed=1)
        >>> torch.equal(both.uniform("mask", 4)[1:], second.uniform("mask", 4))
        True
    """

    rows: np.ndarray
    seed: int = 0
    step: int = 0
    purpose: str = ""

    @classmethod
    def of(cls, rows: Sequence[int] | np.ndarray, seed: int = 0, step: int = 0) -> RowDraws:
        """Return the draws of some rows at a step."""
        return cls(np.asarray(rows, dtype=np.int64), seed, step)

    @classmethod
    def from_generator(cls, rows: int) -> RowDraws:
        """Return draws of unknown rows, with a seed from PyTorch's generator."""
        seed = int(torch.randint(2**63 - 1, (), device="cpu"))
        return cls.of(range(rows), seed)

    def __getitem__(self, chosen: Any) -> RowDraws:
        """Return the draws of some of the rows."""
        return replace(self, rows=self.rows[chosen])

    def for_purpose(self, purpose: str) -> RowDraws:
        """Return the draws of the same rows for a purpose."""
        return replace(self, purpose=purpose)

    def of_views(self, views: int) -> RowDraws:
        """Return draws for several sentences of each row: all rows of the first view, then of the next."""
        parts = [self.rows * views + view for view in range(views)]
        return replace(self, rows=np.concatenate(parts))

    def uniform(self, purpose: str, width: int) -> Tensor:
        """Return numbers from 0 to below 1, (rows, width) fp32, on the CPU.

        The numbers of a row don't depend on `width`: fewer are the first of more.

        Args:
            purpose: What they are for, within the purpose of the draws.
            width: How many numbers each row gets.
        """
        name = zlib.crc32(f"{self.purpose} {purpose}".encode())
        seeds = np.random.SeedSequence([self.seed, self.step, name])
        key = seeds.generate_state(1, np.uint64)
        starts = _mixed(self.rows.astype(np.uint64) * _STEP + key)
        counts = np.arange(1, width + 1, dtype=np.uint64)
        bits = _mixed(starts[:, None] + counts * _STEP)
        # fp32 holds 24 bits exactly.
        numbers = (bits >> np.uint64(40)).astype(np.float32) / np.float32(1 << 24)
        return torch.from_numpy(numbers)


def _mixed(bits: np.ndarray) -> np.ndarray:
    """Return 64-bit words in which each bit depends on all bits of the given one.

    Source: SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), its finaliser.
    """
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return bits ^ (bits >> np.uint64(31))
