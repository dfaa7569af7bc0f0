"""Keeping freed memory for the next step, instead of handing it back to the system and asking again."""

from __future__ import annotations

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # from <malloc.h>


def keep_freed_memory() -> bool:
    """Tells the C library not to return freed memory to the system; call it once, before training on a CPU.

    A training step frees its activations and gradients and allocates the same sizes again. By default glibc gives
    blocks above 32 MiB (the gradient of a word-embedding table) and the free end of its heap back, and the system
    clears every page anew in each step. The price: memory once used stays with the process.

    Returns:
        Whether it took effect: only where the C library is glibc.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):  # not glibc
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, 1 << 30)) and bool(mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1))
