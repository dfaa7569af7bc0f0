"""The cache that runs share, and the stores in it: columns of texts, lists, vectors or numbers, memory-mapped.

A store is an Arrow file with a single record batch, so each column is one array, and reading a row touches only the
pages of that row. The least recently used entries of the cache go first.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import mmap
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from opencse.foundation.errors import OpencseError
from opencse.foundation.files import find_damage, replaced_folder, writable, write_checksums

if TYPE_CHECKING:
    import pyarrow as pa


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


def clear_cache() -> int:
    """Remove all entries, and return the number of bytes that were freed.

    Raises:
        OpencseError: An entry cannot be removed.
    """
    freed = 0
    for kind in KINDS:
        for path in _entries(kind):
            with writable(path), contextlib.suppress(FileNotFoundError):  # another process removes it at the same time
                freed += _size(path)
                shutil.rmtree(path) if path.is_dir() else path.unlink()
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


def trim_cache() -> None:
    """Remove the least recently used entries until the others take at most `$OPENCSE_CACHE_GIB` GiB, or 20 GiB.

    Entries that were used within a day are kept even if they exceed it.
    """
    limit, taken, now = _limit(), 0, time.time()
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


_VERSION = 1
_FILE = "store.arrow"


class Column(NamedTuple):
    """A column of n rows.

    Attributes:
        values: Numbers (n,), vectors (n, d), or the lists or UTF-8 bytes of all rows one after another; read-only.
        offsets: int64 (n + 1,); row i holds `values[offsets[i]:offsets[i + 1]]`. None for numbers and vectors.
        valid: bool (n,), False for a null; None if no row is null.
    """

    values: np.ndarray
    offsets: np.ndarray | None
    valid: np.ndarray | None


class Store:
    """A file of columns, memory-mapped. Pickling sends only the path.

    Args:
        path: A file that `StoreWriter` wrote.

    Attributes:
        columns: The columns by name.
        meta: What the writer noted.

    Raises:
        OpencseError: The file is missing, incomplete, or another kind of file.
    """

    def __init__(self, path: Path) -> None:
        import pyarrow as pa

        self._path = path
        try:
            with path.open("rb") as file:
                memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
            batch = pa.ipc.open_file(pa.py_buffer(memory)).get_batch(0)
            batch.validate()
            self.columns = {name: _column(batch.column(name)) for name in batch.schema.names}
            self.meta: dict[str, Any] = json.loads((batch.schema.metadata or {}).get(b"opencse", b"{}"))
        except (OSError, ValueError, KeyError, NotImplementedError, pa.ArrowException) as error:
            raise OpencseError(f"{path}: not a complete store ({error})", "Remove it.") from None
        self._rows = batch.num_rows

    def __reduce__(self) -> tuple[type[Store], tuple[Path]]:
        return Store, (self._path,)

    def __len__(self) -> int:
        return self._rows

    def texts(self, name: str, rows: np.ndarray) -> list[str]:
        """Return some rows, int64 (m,), of a column of texts."""
        values, offsets, _ = self.columns[name]
        assert offsets is not None
        starts, ends = offsets[rows], offsets[rows + 1]
        data = memoryview(values)  # type: ignore[arg-type]  # slices of an array take ten times as long
        return [str(data[start:end], "utf-8") for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]


class StoreWriter:
    """Writer of a store, chunk by chunk; memory grows by 9 bytes for each text or list.

    Values are kept in unnamed files in `folder`, so a killed process leaves nothing behind.

    Args:
        folder: A folder on the disk that the store is written to.
        columns: Types by name: `large_string`, `large_list` of numbers, `list_` of numbers with a size, or a number.

    Attributes:
        rows: Number of rows added so far.
        meta: Notes that `Store.meta` gives back; JSON.
    """

    def __init__(self, folder: Path, columns: Mapping[str, pa.DataType]) -> None:
        self.rows = 0
        self.meta: dict[str, Any] = {}
        self._spools = {name: _Spool(kind, folder) for name, kind in columns.items()}

    def add(self, *columns: Sequence[object] | np.ndarray) -> None:
        """Add as many rows to each column: an array of numbers or vectors, or a sequence of texts, lists and None."""
        for spool, chunk in zip(self._spools.values(), columns, strict=True):
            spool.add(chunk)
        self.rows += len(columns[0])

    def save(self, path: Path) -> None:
        """Write the file; `opencse.foundation.files` replaces one in one step."""
        import pyarrow as pa

        batch = pa.record_batch({name: spool.array() for name, spool in self._spools.items()})
        batch = batch.replace_schema_metadata({"opencse": json.dumps(self.meta)})
        options = pa.ipc.IpcWriteOptions(allow_64bit=True)  # more than 2^31 tokens or components
        with path.open("wb") as file, pa.ipc.new_file(file, batch.schema, options=options) as writer:
            writer.write_batch(batch)


class CachedStore:
    """The place of a store in the cache.

    Args:
        kind: One of `opencse.foundation.cache.KINDS`.
        key: Everything that the content depends on; JSON.

    Raises:
        OpencseError: OPENCSE_CACHE_GIB is not a size.

    Example:
        cached = CachedStore("sentences", digest)
        if cached.missing:
            with cached.writer({"texts": pa.large_string()}) as writer:
                writer.add(["A sentence."])
        store = cached.open()
    """

    def __init__(self, kind: str, key: object) -> None:
        self._folder = cache_place(kind, key_hash([_VERSION, key]))

    @property
    def missing(self) -> bool:
        """Whether the store is not in the cache, or is damaged."""
        return not self._folder.is_dir() or bool(find_damage(self._folder))

    @contextmanager
    def writer(self, columns: Mapping[str, pa.DataType]) -> Iterator[StoreWriter]:
        """Yield a writer, with columns as in `StoreWriter`; the store is saved at the end, whole or not at all.

        Raises:
            OpencseError: The cache cannot be written.
        """
        with replaced_folder(self._folder) as temporary:
            writer = StoreWriter(temporary, columns)
            yield writer
            writer.save(temporary / _FILE)
            write_checksums(temporary)

    def open(self) -> Store:
        """Open the store."""
        return Store(self._folder / _FILE)


def key_hash(key: object) -> str:
    """Return a hash of a JSON value, 32 hexadecimal digits."""
    return hashlib.blake2b(json.dumps(key, sort_keys=True).encode(), digest_size=16).hexdigest()


class _Spool:
    """The rows of a column that is being written."""

    def __init__(self, kind: pa.DataType, folder: Path) -> None:
        self._kind, self._item = kind, getattr(kind, "value_type", kind)
        self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115  # closed with this object
        self._ends, self._valid = [np.zeros(1, np.int64)], [np.ones(0, bool)]

    def add(self, chunk: Sequence[object] | np.ndarray) -> None:
        import pyarrow as pa

        if isinstance(chunk, np.ndarray):
            self._file.write(np.ascontiguousarray(chunk, self._item.to_pandas_dtype()).data)
        elif chunk:
            array = pa.array(chunk, self._kind)
            values, offsets, valid = _column(array)
            assert offsets is not None
            self._file.write(values[: offsets[-1]].data)
            self._ends.append(self._ends[-1][-1] + offsets[1:])
            self._valid.append(np.ones(len(array), bool) if valid is None else valid)

    def values(self) -> np.ndarray:
        import pyarrow as pa

        self._file.flush()
        dtype = np.uint8 if pa.types.is_large_string(self._kind) else self._item.to_pandas_dtype()
        # An empty file cannot be mapped.
        values = np.memmap(self._file, dtype, "r") if self._file.tell() else np.zeros(0, dtype)
        return values.reshape(-1, self._kind.list_size) if pa.types.is_fixed_size_list(self._kind) else values

    def array(self) -> pa.Array:
        import pyarrow as pa

        values, offsets = pa.array(self.values().reshape(-1)), np.concatenate(self._ends)
        if pa.types.is_large_string(self._kind):
            return pa.LargeStringArray.from_buffers(len(offsets) - 1, pa.py_buffer(offsets), values.buffers()[1])
        if pa.types.is_large_list(self._kind):
            return pa.LargeListArray.from_arrays(offsets, values, mask=pa.array(~np.concatenate(self._valid)))
        return pa.FixedSizeListArray.from_arrays(values, type=self._kind) if self._item != self._kind else values


def _column(array: pa.Array) -> Column:
    import pyarrow as pa

    kind = array.type
    valid = array.is_valid().to_numpy(zero_copy_only=False) if array.null_count else None
    if pa.types.is_large_string(kind):
        _, ends, data = array.buffers()
        return Column(np.frombuffer(data or b"", np.uint8), np.frombuffer(ends, np.int64)[: len(array) + 1], valid)
    if pa.types.is_large_list(kind):
        return Column(array.values.to_numpy(), array.offsets.to_numpy(), valid)
    if pa.types.is_fixed_size_list(kind):
        return Column(array.values.to_numpy().reshape(-1, kind.list_size), None, valid)
    return Column(array.to_numpy(), None, valid)
