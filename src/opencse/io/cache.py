"""The cache of token, sentence and vector stores that runs share; the least recently used are removed first."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from platformdirs import user_cache_path

from opencse.errors import OpencseError

GIB = 2**30
KINDS = ("inputs", "polarity", "sentences", "teachers", "tokens", "vectors")
"""The folders of stores. What else lies in the cache's folder is not ours to remove."""
_KEPT = 24 * 3600
"""Seconds for which nothing is removed after its last use: a run may have it open."""


def cache_root() -> Path:
    """Return where stores are kept: `$OPENCSE_CACHE`, or `opencse` in the user's cache folder of this system."""
    if root := os.environ.get("OPENCSE_CACHE"):
        return Path(root)
    return user_cache_path("opencse", appauthor=False)


def cache_sizes() -> dict[str, int]:
    """Return the bytes that each kind of store takes."""
    return {kind: _size(cache_root() / kind) if (cache_root() / kind).is_dir() else 0 for kind in KINDS}


def clear_cache(kinds: Iterable[str] = KINDS) -> int:
    """Remove all stores of these kinds, and return the bytes that were freed.

    Args:
        kinds: Some of `KINDS`; nothing else in the folder is touched.
    """
    freed = 0
    for kind in kinds:
        folder = cache_root() / kind
        if kind in KINDS and folder.is_dir():
            freed += _size(folder)
            shutil.rmtree(folder)
    return freed


def cache_place(kind: str, name: str) -> Path:
    """The file or folder of a store. One that is there is marked as used now; for one that is not, room is made.

    Raises:
        OpencseError: OPENCSE_CACHE_GIB is no number.
    """
    path = cache_root() / kind / name
    if path.exists():
        with contextlib.suppress(OSError):  # a cache that may only be read
            os.utime(path)
    else:
        trim_cache()
    return path


def trim_cache(limit: int | None = None) -> None:
    """Remove the stores that were longest unused until the rest takes at most `limit` bytes.

    Args:
        limit: By default `$OPENCSE_CACHE_GIB` GiB, or 20. What was used within a day stays, whatever it takes.
    """
    limit = _limit() if limit is None else limit
    taken, now = 0, time.time()
    with contextlib.suppress(OSError):  # another process makes room, too
        stores = [path for kind in KINDS for path in (cache_root() / kind).glob("[!.]*")]
        for used, path in sorted(((path.stat().st_mtime, path) for path in stores), reverse=True):
            taken += _size(path)
            if taken > limit and now - used > _KEPT:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _limit() -> int:
    given = os.environ.get("OPENCSE_CACHE_GIB", "20")
    try:
        return int(float(given) * GIB)
    except ValueError as error:
        raise OpencseError(f"OPENCSE_CACHE_GIB: {given!r} is no number", "Give GiB, such as 20.") from error


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in (path.rglob("*") if path.is_dir() else (path,)) if file.is_file())
