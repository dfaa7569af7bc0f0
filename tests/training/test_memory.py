"""Freed memory is kept: allocations of the same size come to cost no new pages."""

import os
import subprocess
import sys

import pytest

# In a process of its own, because the setting is for the whole process.
SCRIPT = """
import resource, sys, torch
from opencse.training.memory import keep_freed_memory
if not keep_freed_memory():
    sys.exit(3)
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    torch.ones(100, 1 << 18).sum()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
first = faults()
print(first, min(faults() for _ in range(10)))
"""


def test_pages_are_used_again():
    small_pages = os.environ | {"THP_MEM_ALLOC_ENABLE": "0"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False, env=small_pages)
    if done.returncode == 3:
        pytest.skip("the C library is not glibc")
    first, later = map(int, done.stdout.split())
    assert first > 100  # 100 MiB, in pages of 4 KiB or huge ones
    assert later < first / 10
