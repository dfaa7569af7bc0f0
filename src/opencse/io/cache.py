"""The cache of token, sentence and vector stores that runs share; the least recently used are removed first."""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from platformdirs import user_cache_path

from opencse.errors import OpencseError
from opencse.io.checksums import damage, seal
from opencse.io.files import replaced_folder, writable

GIB = 2**30
KINDS = ("inputs", "polarity", "sentences", "teachers", "tokens", "vectors")
"""The folders of stores. What else lies in the cache's folder is not ours to remove."""
_KEPT = 24 * 3600
"""Seconds for which nothing is removed after its last use: a run may have it open."""


def cache_root() -> Path:
    """Return where stores are kept: `$OPENCSE_CACHE`, or `opencse` in the user's cache folder of this system."""
    if root := os.environ.get("OPENCSE_CACHE"):
        return Path(root)
    try:
        return user_cache_path("opencse", appauthor=False)
    except RuntimeError:  # neither HOME nor an entry in the list of users
        return Path(tempfile.gettempdir()) / f"opencse-{os.getuid()}"


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
    """Return the file or folder of a store. One that is there is marked as used now; for one that is not, room is made.

    Raises:
        OpencseError: OPENCSE_CACHE_GIB is not a number.
    """
    path = cache_root() / kind / name
    with writable(path):
        there = path.exists()
    if there:
        with contextlib.suppress(OSError):  # a cache that may only be read
            os.utime(path)
    else:
        trim_cache()
    return path


def sealed_store(kind: str, name: str, build: Callable[[Path], None]) -> Path:
    """Return the folder of a store that is whole: one that is damaged or not there is built.

    Args:
        kind: One of `KINDS`.
        name: A hash of all that the store is made from.
        build: Writes the store's files into an empty folder.

    Raises:
        OpencseError: The cache cannot be written, or OPENCSE_CACHE_GIB is no size.
    """
    folder = cache_place(kind, name)
    if not folder.is_dir() or damage(folder):
        with replaced_folder(folder) as temporary:
            build(temporary)
            seal(temporary)
    return folder


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
    given = os.environ.get("OPENCSE_CACHE_GIB") or "20"
    try:
        size = float(given)
    except ValueError:
        size = math.nan
    if not 0 <= size <= 2**30:
        raise OpencseError(f"OPENCSE_CACHE_GIB: {given!r} is no size", "Give GiB, such as 20.")
    return int(size * GIB)


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in (path.rglob("*") if path.is_dir() else (path,)) if file.is_file())
