"""The cache of converted corpora, tokens and vectors that runs share; the least recently used entries go first."""

from __future__ import annotations

import contextlib
import math
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from opencse.foundation.errors import OpencseError
from opencse.foundation.files import writable

GIB = 2**30
KINDS = ("inputs", "sentences", "teachers", "tokens", "vectors")
"""The folders of the cache. Anything else in its root belongs to others and is never removed."""
_ENTRY = re.compile(r"(^|-)[0-9a-f]{32}(\.parquet)?$")
_KEPT = 24 * 3600
"""Seconds after its last use in which an entry is never removed, because a run may have it open."""


def cache_root() -> Path:
    """Return the root of the cache: `$OPENCSE_CACHE`, or `opencse` in the user's cache folder of the system."""
    if root := os.environ.get("OPENCSE_CACHE"):
        return Path(root)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or tempfile.gettempdir()) / "opencse"
    if sys.platform != "darwin" and (folder := os.environ.get("XDG_CACHE_HOME")):
        return Path(folder) / "opencse"
    try:
        return Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "opencse"
    except RuntimeError:  # neither HOME nor an entry in the user database
        return Path(tempfile.gettempdir()) / f"opencse-{os.getuid()}"


def cache_sizes() -> dict[str, int]:
    """Return the size of each folder of the cache in bytes, by kind."""
    return {kind: sum(map(_size, _entries(kind))) for kind in KINDS}


def clear_cache(kinds: Iterable[str] = KINDS) -> int:
    """Remove all entries of some kinds, and return the number of bytes that were freed.

    Args:
        kinds: Some of `KINDS`; others are ignored.

    Raises:
        OpencseError: An entry cannot be removed.
    """
    freed = 0
    for kind in set(kinds) & set(KINDS):
        for path in _entries(kind):
            with writable(path), contextlib.suppress(FileNotFoundError):  # another process removes it at the same time
                freed += _size(path)
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        with contextlib.suppress(OSError):  # others keep files there
            (cache_root() / kind).rmdir()
    return freed


def cache_place(kind: str, name: str) -> Path:
    """Return the path of an entry. An existing entry is marked as used now; for a new one, room is made.

    Raises:
        OpencseError: OPENCSE_CACHE_GIB is not a number.
    """
    path = cache_root() / kind / name
    with writable(path):
        exists = path.exists()
    if exists:
        with contextlib.suppress(OSError):  # a read-only cache
            os.utime(path)
    else:
        trim_cache()
    return path


def trim_cache(limit: int | None = None) -> None:
    """Remove the least recently used entries until the others take at most `limit` bytes.

    Args:
        limit: Maximum size in bytes; by default `$OPENCSE_CACHE_GIB` GiB, or 20 GiB. Entries that were used within a
            day are kept even if they exceed it.
    """
    limit = _limit() if limit is None else limit
    taken, now = 0, time.time()
    with contextlib.suppress(OSError):  # another process makes room at the same time
        stores = [path for kind in KINDS for path in _entries(kind)]
        for used, path in sorted(((path.stat().st_mtime, path) for path in stores), reverse=True):
            taken += _size(path)
            if taken > limit and now - used > _KEPT:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _entries(kind: str) -> list[Path]:
    """Return the entries of a kind. Files whose name is no hash belong to others, and so do the targets of links."""
    folder = cache_root() / kind
    if os.path.islink(folder) or not os.path.isdir(folder):
        return []
    return [path for path in folder.iterdir() if _ENTRY.search(path.name) and not path.name.startswith(".")]


def _limit() -> int:
    given = os.environ.get("OPENCSE_CACHE_GIB") or "20"
    try:
        size = float(given)
    except ValueError:
        size = math.nan
    if not 0 <= size <= 2**30:
        raise OpencseError(f"OPENCSE_CACHE_GIB: {given!r} is not a size", "Give GiB, such as 20.")
    return int(size * GIB)


def _size(path: Path) -> int:
    size = 0
    for file in path.rglob("*") if path.is_dir() else (path,):
        with contextlib.suppress(FileNotFoundError):  # another process removes it at the same time
            size += file.stat().st_size if file.is_file() else 0
    return size
