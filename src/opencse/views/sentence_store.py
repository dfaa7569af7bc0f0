"""A corpus as a whole, for what cannot be made from one row alone.

Its sentences are kept on disk and read by number: any process, on any machine that sees the folder, can fetch some.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from opencse.engines import Engine
from opencse.io.cache import cache_place
from opencse.io.files import replaced_folder

_VERSION = 1
_CHUNK = 8192


@dataclass(frozen=True, kw_only=True)
class CorpusAccess:
    """What a specification may use to prepare itself.

    Attributes:
        sentences: All of them, by number.
        engine: Where batch work runs.
        progress: Whether to show progress bars.
        tell: Takes short notes for the user.
    """

    sentences: Sentences
    engine: Engine
    progress: bool
    tell: Callable[[str], None]


class Sentences:
    """Memory-mapped texts, numbered as the builder numbers rows.

    The folder holds the UTF-8 bytes of all texts, their ends, and a 64-bit key of each text without regard to case and
    white space, by which copies are known. Opening costs nothing; pickling sends the path alone.
    """

    def __init__(self, folder: Path) -> None:
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        self.folder = folder
        self.texts_hash: str = meta["texts_sha256"]
        self._rows: int = meta["rows"]

    def __reduce__(self) -> tuple[type[Sentences], tuple[Path]]:
        return Sentences, (self.folder,)

    def __len__(self) -> int:
        return self._rows

    @cached_property
    def keys(self) -> np.ndarray:
        """One uint64 per text (memory-mapped): equal for texts that differ in case and white space alone."""
        return np.memmap(self.folder / "keys", dtype="<u8", mode="r")

    @cached_property
    def _ends(self) -> np.ndarray:
        return np.memmap(self.folder / "ends", dtype="<i8", mode="r")

    @cached_property
    def _bytes(self) -> np.ndarray:
        return np.memmap(self.folder / "texts", dtype=np.uint8, mode="r")

    def take(self, ids: np.ndarray) -> list[str]:
        """Return the texts with these numbers."""
        ends = np.asarray(self._ends[ids]).tolist()
        starts = np.where(ids > 0, self._ends[np.maximum(ids, 1) - 1], 0).tolist()
        data = memoryview(self._bytes)  # type: ignore[arg-type]  # slices of an array take ten times as long
        return [str(data[start:end], "utf-8") for start, end in zip(starts, ends, strict=True)]

    def range(self, start: int, stop: int) -> list[str]:
        """Return the texts from number `start` to before `stop`."""
        return self.take(np.arange(start, min(stop, len(self))))


def open_sentences(texts: Iterable[str], texts_hash: str) -> Sentences:
    """Open the store of a corpus in the cache, and write it first where there is none.

    One pass, constant memory; the folder takes the bytes of the texts and 16 more for each.

    Args:
        texts: All of them, in order; only read if there is no store yet.
        texts_hash: Their hash, `opencse.views.storage.texts_hash`.
    """
    name = hashlib.blake2b(f"{_VERSION} {texts_hash}".encode(), digest_size=16).hexdigest()
    folder = cache_place("sentences", name)
    if not (folder / "meta.json").is_file():
        with replaced_folder(folder) as temporary:
            _write(temporary, texts, texts_hash)
    return Sentences(folder)


def _write(folder: Path, texts: Iterable[str], texts_hash: str) -> None:
    rows = end = 0
    chunk: list[str] = []
    with (folder / "texts").open("wb") as data, (folder / "ends").open("wb") as ends, (folder / "keys").open("wb") as k:

        def flush() -> None:
            nonlocal rows, end
            encoded = [text.encode("utf-8", "replace") for text in chunk]
            sizes = np.cumsum([len(one) for one in encoded], dtype="<i8")
            data.write(b"".join(encoded))
            ends.write((sizes + end).tobytes())
            k.write(_keys(chunk).tobytes())
            rows, end = rows + len(chunk), end + int(sizes[-1])
            chunk.clear()

        for text in texts:
            chunk.append(text)
            if len(chunk) == _CHUNK:
                flush()
        if chunk:
            flush()
    meta = {"rows": rows, "texts_sha256": texts_hash}
    (folder / "meta.json").write_text(json.dumps(meta), encoding="utf-8")


def _keys(texts: Sequence[str]) -> np.ndarray:
    hashes = (hashlib.blake2b(" ".join(t.lower().split()).encode("utf-8", "replace"), digest_size=8) for t in texts)
    return np.frombuffer(b"".join(one.digest() for one in hashes), dtype="<u8")
