"""Advice on how a mapped array is read."""

import mmap

import numpy as np
import pytest

from opencse.foundation.mapped import advise

pytestmark = pytest.mark.skipif(not hasattr(mmap.mmap, "madvise"), reason="the system takes no advice")


class Watched(mmap.mmap):
    advice = None

    def madvise(self, option):
        self.advice = option


def test_rows_far_apart_are_read_without_reading_ahead():
    memory = Watched(-1, 12 * 2**20)
    array = np.ndarray((12 * 2**10, 1024), dtype=np.uint8, buffer=memory)
    advise(array, np.array([9000, 10, 4000]))  # 3 MiB apart
    assert memory.advice == mmap.MADV_RANDOM
    advise(array, np.arange(500, 600))
    assert memory.advice == mmap.MADV_NORMAL


def test_a_stored_array_is_mapped_as_the_advice_expects(tmp_path):
    np.save(tmp_path / "array.npy", np.arange(2048, dtype=np.float32).reshape(-1, 2))
    array = np.load(tmp_path / "array.npy", mmap_mode="r")
    assert isinstance(array.base, mmap.mmap)
    advise(array, np.array([0, 1000]))
    assert array[1000].tolist() == [2000, 2001]


def test_an_array_in_memory_takes_no_advice():
    advise(np.zeros((4, 4)), np.array([0, 3]))
    advise(np.zeros((4, 4)), np.zeros(0, dtype=int))
