"""Reuse of freed memory in the next step, instead of returning it to the system."""

from __future__ import annotations

import ctypes
import sys

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # from <malloc.h>


def keep_freed_memory() -> bool:
    """Tell the C library to keep freed memory; call it once, before training on a CPU.

    A training step frees its activations and gradients, and the next one allocates the same sizes again. By default
    glibc returns blocks above 32 MiB (the gradient of a word-embedding table) and the free end of its heap to the
    system, which then clears every page again in each step. The price is that the process never shrinks.

    Returns:
        Whether it took effect, which needs glibc.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL("libc.so.6").mallopt
    except (OSError, AttributeError):  # not glibc
        return False
    return bool(mallopt(_M_MMAP_THRESHOLD, 1 << 30)) and bool(mallopt(_M_TRIM_THRESHOLD, (1 << 31) - 1))
