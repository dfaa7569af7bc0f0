"""Access to all sentences of a corpus by number, for views that depend on more than their own row.

The sentences are kept on disk, so any process on any machine that sees the folder can read them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from opencse.foundation.cache import sealed_store
from opencse.foundation.mapped import advise
from opencse.foundation.workers import Engine

_VERSION = 1
_CHUNK = 8192


@dataclass(frozen=True, kw_only=True)
class CorpusAccess:
    """The corpus, the engine and the callbacks that `ConstructorSpec.prepare` receives.

    Attributes:
        sentences: All sentences, by number.
        engine: Runs batch work.
        progress: Show progress bars.
        notify: Receives short notes for the user.
    """

    sentences: SentenceStore
    engine: Engine
    progress: bool
    notify: Callable[[str], None]


class SentenceStore:
    """Memory-mapped texts with the numbers that the builder gives to rows.

    The folder holds the UTF-8 bytes of all texts, their ends, and a 64-bit key of each text that ignores case and white
    space, to recognise duplicates. Opening takes no time; pickling sends only the path.
    """

    def __init__(self, folder: Path) -> None:
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        self.folder = folder
        self.texts_hash: str = meta["texts_sha256"]
        self._rows: int = meta["rows"]

    def __reduce__(self) -> tuple[type[SentenceStore], tuple[Path]]:
        return SentenceStore, (self.folder,)

    def __len__(self) -> int:
        return self._rows

    @cached_property
    def keys(self) -> np.ndarray:
        """uint64 (n,), memory-mapped: equal for texts that differ only in case and white space."""
        return np.memmap(self.folder / "keys", dtype="<u8", mode="r")

    @cached_property
    def _ends(self) -> np.ndarray:
        return np.memmap(self.folder / "ends", dtype="<i8", mode="r")

    @cached_property
    def _bytes(self) -> np.ndarray:
        return np.memmap(self.folder / "texts", dtype=np.uint8, mode="r")

    def take(self, ids: np.ndarray) -> list[str]:
        """Return the texts with the given numbers, int64 (m,)."""
        ends = np.asarray(self._ends[ids])
        starts = np.where(ids > 0, self._ends[np.maximum(ids, 1) - 1], 0)
        advise(self._bytes, starts)
        data = memoryview(self._bytes)  # type: ignore[arg-type]  # slices of an array take ten times as long
        return [str(data[start:end], "utf-8") for start, end in zip(starts.tolist(), ends.tolist(), strict=True)]

    def range(self, start: int, stop: int) -> list[str]:
        """Return the texts with the numbers from `start` up to, but not including, `stop`."""
        return self.take(np.arange(start, min(stop, len(self))))


def open_sentence_store(texts: Iterable[str], texts_hash: str) -> SentenceStore:
    """Open the sentences of a corpus in the cache; write them first if they are not there.

    Writing takes one pass and constant memory. The folder takes the bytes of the texts and 16 bytes for each text.

    Args:
        texts: All texts, in order; only read if they are not in the cache yet.
        texts_hash: Hash of the texts, from `opencse.text.views.storage.texts_hash`.
    """
    name = hashlib.blake2b(f"{_VERSION} {texts_hash}".encode(), digest_size=16).hexdigest()
    return SentenceStore(sealed_store("sentences", name, lambda folder: _write(folder, texts, texts_hash)))


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
    """Return the 64-bit keys of some texts, uint64 (n,)."""
    hashes = (hashlib.blake2b(" ".join(t.lower().split()).encode("utf-8", "replace"), digest_size=8) for t in texts)
    return np.frombuffer(b"".join(one.digest() for one in hashes), dtype="<u8")
