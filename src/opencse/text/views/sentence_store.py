"""Access to all sentences of a corpus by number, for views that depend on more than their own row.

The sentences are kept on disk, so any process on any machine that sees the folder can read them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from opencse.foundation.cache import CachedStore, Store
from opencse.foundation.workers import Engine
from opencse.text.corpus import chunks

if TYPE_CHECKING:
    from opencse.encoder.backbone import Backbone

_CHUNK = 8192


@dataclass(frozen=True)
class CorpusAccess:
    """The corpus, the engine and the models that `ConstructorSpec.prepare` receives.

    Attributes:
        sentences: All sentences, by number.
        engine: Runs batch work.
        models: Models that are open already, by name.
    """

    sentences: SentenceStore
    engine: Engine
    models: Mapping[str, Backbone] = field(default_factory=dict)


@dataclass(frozen=True)
class SentenceStore:
    """All texts of a corpus with the numbers that the builder gives to rows, memory-mapped; pickling sends a path.

    Attributes:
        store: The texts, and a 64-bit key of each that ignores case and white space, to recognise duplicates.
        texts_hash: Hash of the texts.
    """

    store: Store
    texts_hash: str

    def __len__(self) -> int:
        return len(self.store)

    @property
    def keys(self) -> np.ndarray:
        """uint64 (n,), memory-mapped: equal for texts that differ only in case and white space."""
        return self.store.columns["keys"].values

    def take(self, ids: np.ndarray) -> list[str]:
        """Return the texts with the given numbers, int64 (m,)."""
        return self.store.texts("texts", ids)

    def range(self, start: int, stop: int) -> list[str]:
        """Return the texts with the numbers from `start` up to, but not including, `stop`."""
        return self.take(np.arange(start, min(stop, len(self))))


def texts_hash(texts: Iterable[str | bytes]) -> tuple[str, int]:
    """Return a SHA-256 of the texts in order, and their number."""
    joined, count = hashlib.sha256(), 0
    for text in texts:
        data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        joined.update(len(data).to_bytes(8, "little") + data)
        count += 1
    return joined.hexdigest(), count


def open_sentence_store(texts: Iterable[str], texts_hash: str) -> SentenceStore:
    """Open the sentences of a corpus in the cache; write them first if they are not there.

    Writing takes one pass and constant memory. The file takes the bytes of the texts and 16 bytes for each text.

    Args:
        texts: All texts, in order; only read if they are not in the cache yet.
        texts_hash: Hash of the texts, from `texts_hash`.
    """
    import pyarrow as pa

    cached = CachedStore("sentences", texts_hash)
    if cached.missing:
        with cached.writer({"texts": pa.large_string(), "keys": pa.uint64()}) as writer:
            for chunk in chunks(texts, _CHUNK):
                writer.add([text.encode("utf-8", "replace") for text in chunk], _keys(chunk))
    return SentenceStore(cached.open(), texts_hash)


def _keys(texts: Sequence[str]) -> np.ndarray:
    """Return the 64-bit keys of some texts, uint64 (n,)."""
    hashes = (hashlib.blake2b(" ".join(t.lower().split()).encode("utf-8", "replace"), digest_size=8) for t in texts)
    return np.frombuffer(b"".join(one.digest() for one in hashes), dtype="<u8")
