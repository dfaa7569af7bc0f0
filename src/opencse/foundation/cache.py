"""The cache that runs share, and the stores in it: columns of texts, lists, vectors or numbers, memory-mapped.

A store is a folder of NumPy arrays, one or more for each column, so reading a row touches only the
pages of that row. The least recently used entries of the cache go first.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from opencse.foundation.files import find_damage, replaced, writable, write_checksums
from opencse.foundation.reading import read_json, translate_errors

GIB = 2**30
LARGEST = 20 * GIB
"""Size of the cache in bytes beyond which entries are removed."""
KINDS = ("inputs", "sentences", "tokens", "vectors")
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
        return (
            Path.home() / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "opencse"
        )
    except RuntimeError:  # neither HOME nor an entry in the user database
        return Path(tempfile.gettempdir()) / f"opencse-{os.getuid()}"


def cache_sizes() -> dict[str, int]:
    """Return the size of each folder of the cache in bytes, by kind."""
    return {kind: sum(map(_size, _entries(kind))) for kind in KINDS}


def clear_cache() -> int:
    """Remove all entries, and return the number of bytes that were freed.

    Raises:
        OpencseError: An entry cannot be removed.
    """
    freed = 0
    for kind in KINDS:
        for path in _entries(kind):
            with (
                writable(path),
                contextlib.suppress(FileNotFoundError),
            ):  # another process removes it at the same time
                freed += _size(path)
                shutil.rmtree(path) if path.is_dir() else path.unlink()
    return freed


def cache_place(kind: str, name: str) -> Path:
    """Return the path of an entry. An existing entry is marked as used now; for a new one, room is made."""
    path = cache_root() / kind / name
    with writable(path):
        exists = path.exists()
    if exists:
        with contextlib.suppress(OSError):  # a read-only cache
            os.utime(path)
    else:
        trim_cache()
    return path


def trim_cache() -> None:
    """Remove the least recently used entries until the others take at most `LARGEST` bytes.

    Entries that were used within a day are kept even if they exceed it.
    """
    taken, now = 0, time.time()
    with contextlib.suppress(OSError):  # another process makes room at the same time
        stores = [path for kind in KINDS for path in _entries(kind)]
        for used, path in sorted(((path.stat().st_mtime, path) for path in stores), reverse=True):
            taken += _size(path)
            if taken > LARGEST and now - used > _KEPT:
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def _entries(kind: str) -> list[Path]:
    """Return the entries of a kind. Files whose name is no hash belong to others, and so do the targets of links."""
    folder = cache_root() / kind
    if os.path.islink(folder) or not os.path.isdir(folder):
        return []
    return [
        path
        for path in folder.iterdir()
        if _ENTRY.search(path.name) and not path.name.startswith(".")
    ]


def _size(path: Path) -> int:
    size = 0
    for file in path.rglob("*") if path.is_dir() else (path,):
        with contextlib.suppress(FileNotFoundError):  # another process removes it at the same time
            size += file.stat().st_size if file.is_file() else 0
    return size


_VERSION = 2
_META = "meta.json"


class Column(NamedTuple):
    """A column of n rows.

    Attributes:
        values: Numbers (n,), vectors (n, d), or the lists or UTF-8 bytes of all rows one after
            another; read-only.
        offsets: int64 (n + 1,); row i holds `values[offsets[i]:offsets[i + 1]]`. None for numbers
            and vectors.
        valid: bool (n,), False for a null; None if no row is null.
    """

    values: np.ndarray
    offsets: np.ndarray | None
    valid: np.ndarray | None


class Store:
    """A folder of columns, memory-mapped. Pickling sends only the path.

    Args:
        folder: A folder that `StoreWriter` wrote.

    Attributes:
        columns: The columns by name.
        meta: What the writer noted, and the number of `rows`.

    Raises:
        OpencseError: The folder is missing or incomplete.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        with translate_errors(folder, "not a complete store", "Remove it."):
            self.meta = read_json(folder / _META)
            arrays = {file.stem: np.load(file, mmap_mode="r") for file in folder.glob("*.npy")}
        self.columns = {
            name: Column(array, arrays.get(f"{name}.offsets"), arrays.get(f"{name}.valid"))
            for name, array in arrays.items()
            if "." not in name
        }

    def __reduce__(self) -> tuple[type[Store], tuple[Path]]:
        return Store, (self._folder,)

    def __len__(self) -> int:
        return int(self.meta["rows"])

    def texts(self, name: str, rows: np.ndarray) -> list[str]:
        """Return some rows, int64 (m,), of a column of texts."""
        values, offsets, _ = self.columns[name]
        assert offsets is not None
        starts, ends = offsets[rows], offsets[rows + 1]
        data = memoryview(values)  # type: ignore[arg-type]  # slices of an array take ten times as long
        return [
            str(data[start:end], "utf-8")
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]


class StoreWriter:
    """Writer of a store, chunk by chunk; memory grows by 9 bytes for each text or list.

    Values are kept in unnamed files until the end, so a killed process leaves nothing behind.

    Args:
        folder: An empty folder.
        columns: Types of the values by column; those of texts are bytes, `uint8`.

    Attributes:
        meta: Notes that `Store.meta` gives back; JSON.
    """

    def __init__(self, folder: Path, columns: Mapping[str, Any]) -> None:
        self.meta: dict[str, Any] = {"rows": 0}
        self._folder = folder
        self._spools = {name: _Spool(np.dtype(kind), folder) for name, kind in columns.items()}

    def add(self, *columns: Sequence[Sequence[int] | None] | np.ndarray) -> None:
        """Add as many rows to each column: an array of numbers or vectors, or a sequence of bytes, lists and None."""
        for spool, chunk in zip(self._spools.values(), columns, strict=True):
            spool.add(chunk)
        self.meta["rows"] += len(columns[0])

    def save(self) -> None:
        """Write the files; `opencse.foundation.files` replaces a folder in one step."""
        for name, spool in self._spools.items():
            for part, array in spool.arrays().items():
                np.save(self._folder / f"{name}{part}.npy", array)
        (self._folder / _META).write_text(json.dumps(self.meta), encoding="utf-8")


def store_folder(kind: str, key: object) -> Path:
    """Return the folder of a store in the cache.

    Args:
        kind: One of `opencse.foundation.cache.KINDS`.
        key: Everything that the content depends on; JSON.

    Example:
        folder = store_folder("sentences", digest)
        if not is_whole(folder):
            with new_store(folder, {"texts": np.uint8}) as writer:
                writer.add([b"A sentence."])
        store = Store(folder)
    """
    return cache_place(kind, key_hash([_VERSION, key]))


def is_whole(folder: Path) -> bool:
    """Return whether a store is there and undamaged."""
    return folder.is_dir() and not find_damage(folder)


@contextlib.contextmanager
def new_store(folder: Path, columns: Mapping[str, Any]) -> Iterator[StoreWriter]:
    """Yield a writer; if the block succeeds, its store takes the place of a folder of the cache in one step.

    Raises:
        OpencseError: The cache cannot be written.
    """
    with replaced(folder, folder=True) as temporary:
        writer = StoreWriter(temporary, columns)
        yield writer
        writer.save()
        write_checksums(temporary)


def key_hash(key: object) -> str:
    """Return a hash of a JSON value, 32 hexadecimal digits."""
    return hashlib.blake2b(json.dumps(key, sort_keys=True).encode(), digest_size=16).hexdigest()


class _Spool:
    def __init__(self, kind: np.dtype, folder: Path) -> None:
        self._kind, self._shape = kind, (-1,)
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # closed with this object
        self._lengths: list[np.ndarray] = []
        self._valid: list[np.ndarray] = []

    def add(self, chunk: Sequence[Sequence[int] | None] | np.ndarray) -> None:
        if isinstance(chunk, np.ndarray):
            self._shape = (-1, *chunk.shape[1:])
            self._file.write(np.ascontiguousarray(chunk, self._kind).data)
        else:
            cells = [cell or b"" for cell in chunk]
            self._file.write(
                b"".join(
                    c if isinstance(c, bytes) else np.array(c, self._kind).tobytes() for c in cells
                )
            )
            self._lengths.append(np.array([len(cell) for cell in cells], np.int64))
            self._valid.append(np.array([cell is not None for cell in chunk], bool))

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the values, and of texts and lists the offsets and perhaps the nulls, by the ends of their names."""
        self._file.flush()
        # An empty file cannot be mapped.
        values = (
            np.memmap(self._file, self._kind, "r") if self._file.tell() else np.zeros(0, self._kind)
        )
        arrays: dict[str, np.ndarray] = {"": values.reshape(self._shape)}
        if self._lengths:
            arrays[".offsets"] = np.concatenate([[0], np.concatenate(self._lengths).cumsum()])
            valid = np.concatenate(self._valid)
            arrays |= {} if valid.all() else {".valid": valid}
        return arrays
