"""The cache that runs share, and its stores: memory-mapped columns of texts, lists or numbers.

A store is a folder of NumPy arrays, one or more for each column, so reading a row touches only the
pages of that row. The least recently used entries of the cache are removed first.
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
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from opencse.foundation.errors import OpencseError
from opencse.foundation.files import (
    find_damage,
    replaced,
    writable,
    write_checksums,
    write_json,
)
from opencse.foundation.reading import read_json, translate_errors

GIB = 2**30
LARGEST = 20 * GIB
"""Size of the cache in bytes beyond which entries are removed."""
KINDS = ("inputs", "sentences", "tokens", "vectors")
"""The folders of the cache. Anything else in its root belongs to others and is never removed."""
_ENTRY = re.compile(r"(^|-)[0-9a-f]{32}(\.parquet)?$")
# Seconds after its last use in which an entry is never removed, because a run may have it open.
_KEPT = 24 * 3600


def cache_root() -> Path:
    """Return the root of the cache: `$OPENCSE_CACHE`, or `opencse` in the user's cache folder."""
    chosen = os.environ.get("OPENCSE_CACHE")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or tempfile.gettempdir()) / "opencse"
    xdg = os.environ.get("XDG_CACHE_HOME")
    if xdg and sys.platform != "darwin":
        return Path(xdg) / "opencse"
    try:
        home = Path.home()
    # There is neither HOME nor an entry in the user database, as in some containers.
    except RuntimeError:
        return Path(tempfile.gettempdir()) / f"opencse-{os.getuid()}"
    if sys.platform == "darwin":
        return home / "Library/Caches/opencse"
    return home / ".cache/opencse"


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
            # Another process may remove the entry at the same time.
            with writable(path), contextlib.suppress(FileNotFoundError):
                freed += _size(path)
                _remove(path)
    return freed


def cache_place(kind: str, name: str) -> Path:
    """Return the path of an entry; mark an existing one as used now, or make room for a new one."""
    path = cache_root() / kind / name
    with writable(path):
        exists = path.exists()
    if exists:
        # The cache may be read-only.
        with contextlib.suppress(OSError):
            os.utime(path)
    else:
        trim_cache()
    return path


def trim_cache() -> None:
    """Remove the least recently used entries until the others take at most `LARGEST` bytes.

    Entries used within the last day are kept even if they exceed the limit.
    """
    taken = 0
    now = time.time()
    # Another process may make room at the same time.
    with contextlib.suppress(OSError):
        stores = []
        for kind in KINDS:
            for path in _entries(kind):
                stores.append((path.stat().st_mtime, path))
        for used, path in sorted(stores, reverse=True):
            taken += _size(path)
            if taken > LARGEST and now - used > _KEPT:
                _remove(path)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink()


def _entries(kind: str) -> list[Path]:
    """Return the entries of a kind.

    Files whose name is no hash belong to others, and so do the targets of links.
    """
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
    files = path.rglob("*") if path.is_dir() else [path]
    for file in files:
        # Another process may remove it meanwhile.
        with contextlib.suppress(FileNotFoundError):
            if file.is_file():
                size += file.stat().st_size
    return size


_VERSION = 2
_OFFSETS_AT_ONCE = 1 << 20
_META = "meta.json"
_SEEN = "seen.json"
"""Name of the file with the states of the files of a store when they were last found undamaged."""


class StoredColumn(NamedTuple):
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


def _fits(column: StoredColumn, rows: object) -> bool:
    """Return whether a column holds so many rows, and its offsets lie within its values."""
    if type(rows) is not int or rows < 0:
        return False
    if column.valid is not None and column.valid.shape != (rows,):
        return False
    if column.offsets is None:
        return len(column.values) == rows
    offsets = column.offsets
    if offsets.shape != (rows + 1,) or offsets.dtype != np.int64 or column.values.ndim != 1:
        return False
    if offsets[0] != 0 or offsets[-1] != len(column.values):
        return False
    # Those of a billion rows are 8 GB.
    for first in range(0, rows, _OFFSETS_AT_ONCE):
        if (np.diff(offsets[first : first + _OFFSETS_AT_ONCE + 1]) < 0).any():
            return False
    return True


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
        self.columns = {}
        for name, array in arrays.items():
            if "." in name:
                # The offsets and nulls of a column, which has a plain name.
                continue
            offsets = arrays.get(f"{name}.offsets")
            valid = arrays.get(f"{name}.valid")
            self.columns[name] = StoredColumn(array, offsets, valid)
        for name, column in self.columns.items():
            if not _fits(column, self.meta.get("rows")):
                raise OpencseError(
                    f"{folder}: not a complete store (the column {name} has not {self.meta.get('rows')!r:.40} rows)",
                    "Remove it.",
                )

    def __reduce__(self) -> tuple[type[Store], tuple[Path]]:
        return Store, (self._folder,)

    def __len__(self) -> int:
        return int(self.meta["rows"])

    def texts(self, name: str, rows: np.ndarray) -> list[str]:
        """Return some rows, int64 (m,), of a column of texts."""
        values, offsets, _ = self.columns[name]
        assert offsets is not None
        starts = offsets[rows].tolist()
        ends = offsets[rows + 1].tolist()
        # Slices of a memoryview are ten times as fast as slices of an array.
        data = memoryview(values)  # type: ignore[arg-type]
        return [str(data[start:end], "utf-8") for start, end in zip(starts, ends, strict=True)]


class StoreWriter:
    """Writer of a store, chunk by chunk, in constant memory.

    Rows are kept in unnamed files until the end, so a killed process leaves nothing there.

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
        """Add rows: for each column an array, or a sequence of bytes, lists and None."""
        for spool, chunk in zip(self._spools.values(), columns, strict=True):
            spool.add(chunk)
        self.meta["rows"] += len(columns[0])

    def append(self, store: Store) -> None:
        """Add all rows of another store, whose columns are lists or texts of the same names."""
        for name, spool in self._spools.items():
            spool.append(store.columns[name])
        self.meta["rows"] += len(store)

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
    """Return whether a store exists and is undamaged.

    Its files are hashed the first time. Afterwards it is enough that each has the size, the time of
    its last change and the inode that it had then: a store of a large corpus has hundreds of
    gigabytes.
    """
    if not folder.is_dir():
        return False
    seen = folder / _SEEN
    files = _file_states(folder)
    with contextlib.suppress(OpencseError, OSError):
        if read_json(seen) == {"files": files}:
            return True
    if find_damage(folder):
        return False
    # The cache may be read-only.
    with contextlib.suppress(OSError):
        write_json(seen, {"files": files})
    return True


def _file_states(folder: Path) -> dict[str, list[int]]:
    """Return size, time of the last change and inode of each file of a store, by name."""
    states = {}
    for file in sorted(folder.iterdir()):
        if file.name != _SEEN:
            status = file.stat()
            states[file.name] = [
                status.st_size,
                status.st_mtime_ns,
                status.st_ctime_ns,
                status.st_ino,
            ]
    return states


@dataclass(frozen=True)
class Together:
    """Processes that build one store, each of them every `count`-th shard.

    Attributes:
        rank: Number of this process.
        count: Number of processes.
        wait: Function that returns once every process has called it.
    """

    rank: int = 0
    count: int = 1
    wait: Callable[[], None] = lambda: None


@contextlib.contextmanager
def new_store(folder: Path, columns: Mapping[str, Any]) -> Iterator[StoreWriter]:
    """Yield a writer; if the block succeeds, its store replaces a folder of the cache in one step.

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


class _UnnamedFile:
    """An array that grows on disk, in a file without a name, which vanishes with this object."""

    def __init__(self, kind: np.dtype, folder: Path) -> None:
        self.kind = kind
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115

    def add(self, values: bytes | np.ndarray) -> None:
        """Append numbers, or their bytes."""
        if isinstance(values, bytes):
            self._file.write(values)
        else:
            self._file.write(np.ascontiguousarray(values, self.kind).data)

    def array(self) -> np.ndarray:
        """Return all numbers, memory-mapped."""
        self._file.flush()
        if self._file.tell():
            return np.memmap(self._file, self.kind, "r")
        # An empty file cannot be mapped.
        return np.zeros(0, self.kind)


class _Spool:
    """The values of one column while a store is written; nothing of it is held in memory."""

    def __init__(self, kind: np.dtype, folder: Path) -> None:
        self._kind = kind
        self._shape: tuple[int, ...] = (-1,)
        self._values = _UnnamedFile(kind, folder)
        # The end of each list or text in the values, and whether it is there.
        self._ends = _UnnamedFile(np.dtype(np.int64), folder)
        self._valid = _UnnamedFile(np.dtype(bool), folder)
        self._end = 0
        self._has_lists = False
        self._has_nulls = False

    def add(self, chunk: Sequence[Sequence[int] | None] | np.ndarray) -> None:
        if isinstance(chunk, np.ndarray):
            self._shape = (-1, *chunk.shape[1:])
            self._values.add(chunk)
            return
        cells = [cell or b"" for cell in chunk]
        for cell in cells:
            content = cell if isinstance(cell, bytes) else np.array(cell, self._kind).tobytes()
            self._values.add(content)
        lengths = np.array([len(cell) for cell in cells], np.int64)
        self._add_lengths(lengths, np.array([cell is not None for cell in chunk], bool))

    def append(self, column: StoredColumn) -> None:
        """Add the lists or texts of another store."""
        assert column.offsets is not None
        self._values.add(column.values)
        lengths = np.diff(column.offsets)
        valid = column.valid
        if valid is None:
            valid = np.ones(len(lengths), dtype=bool)
        self._add_lengths(lengths, valid)

    def _add_lengths(self, lengths: np.ndarray, valid: np.ndarray) -> None:
        if not self._has_lists:
            self._ends.add(np.zeros(1, np.int64))
        self._has_lists = True
        ends = self._end + np.cumsum(lengths)
        if len(ends):
            self._end = int(ends[-1])
        self._ends.add(ends)
        self._valid.add(valid)
        self._has_nulls = self._has_nulls or not valid.all()

    def arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays by the ends of their file names, memory-mapped.

        These are the values, and for texts and lists the offsets and, if any row is null, a mask.
        """
        arrays = {"": self._values.array().reshape(self._shape)}
        if self._has_lists:
            arrays[".offsets"] = self._ends.array()
        if self._has_nulls:
            arrays[".valid"] = self._valid.array()
        return arrays
