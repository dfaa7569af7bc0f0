"""The embeddings of a corpus on disk: written once per model, memory-mapped, read by number.

The folder's name is a hash of the weights, the tokenizer, the pooling and everything else that determines the vectors
(`opencse.encoder.weights_hash`), of the texts and of the precision, so vectors of another model are never read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from opencse.foundation.cache import cache_place
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import replaced_file, write_json
from opencse.foundation.mapped import advise
from opencse.foundation.reading import read_json
from opencse.text.views.sentence_store import SentenceStore

if TYPE_CHECKING:
    from opencse.encoder.embedder import Embedder
    from opencse.foundation.workers import Engine

Pooling = Literal["backbone", "cls", "mean", "first_last"]

CHUNK = 8192  # texts embedded in one call; shards hold a multiple
_SHARDS = 256  # maximum number of shards, as each is an open file
_VERSION = 1


class Vectors:
    """Unit vectors of a corpus, float16 on disk, in shards of equal size.

    Rounding to float16 changes a cosine by less than 0.0005. Pickling sends only the path.
    """

    def __init__(self, folder: Path) -> None:
        meta = json.loads((folder / "meta.json").read_text(encoding="utf-8"))
        self.folder = folder
        self.weights_hash: str = meta["weights_sha256"]
        self.dimension: int = meta["dimension"]
        self._rows, self._shard_rows = meta["rows"], meta["shard_rows"]
        self._open: dict[int, np.ndarray] = {}

    def __reduce__(self) -> tuple[type[Vectors], tuple[Path]]:
        return Vectors, (self.folder,)

    def __len__(self) -> int:
        return self._rows

    @cached_property
    def shards(self) -> int:
        """Number of shards."""
        return -(-self._rows // self._shard_rows)

    def path(self, shard: int) -> Path:
        """Return the file of a shard."""
        return self.folder / f"shard-{shard:05d}.npy"

    def has(self, shard: int) -> bool:
        """Return whether a shard was written, and is of the right size."""
        start, stop = self.span(shard)
        try:
            found = np.load(self.path(shard), mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError, EOFError):
            return False
        return found.shape == (stop - start, self.dimension) and found.dtype == np.float16

    def span(self, shard: int) -> tuple[int, int]:
        """Return the numbers of the first row of a shard and of the one after its last."""
        return shard * self._shard_rows, min((shard + 1) * self._shard_rows, self._rows)

    def take(self, ids: np.ndarray) -> np.ndarray:
        """Return the vectors with the given numbers, float32 (n, d)."""
        out = np.empty((len(ids), self.dimension), dtype=np.float32)
        order = np.argsort(ids, kind="stable")  # reads the disk sequentially
        ordered = ids[order]
        shard_of = ordered // self._shard_rows
        for shard in np.unique(shard_of).tolist():
            first, last = np.searchsorted(shard_of, [shard, shard + 1])
            vectors, rows = self._shard(shard), ordered[first:last] - self.span(shard)[0]
            advise(vectors, rows)
            out[order[first:last]] = vectors[rows]
        return out

    def _shard(self, shard: int) -> np.ndarray:
        if shard not in self._open:
            self._open[shard] = np.load(self.path(shard), mmap_mode="r", allow_pickle=False)
        return self._open[shard]


def unit_vectors(matrix: np.ndarray) -> np.ndarray:
    """Return the rows of a matrix, float32 (n, d), divided by their Euclidean norm; a zero row stays zero."""
    matrix = np.asarray(matrix, dtype=np.float32)
    return matrix / np.maximum(np.linalg.norm(matrix, axis=1, keepdims=True), 1e-12)


@dataclass(frozen=True, kw_only=True)
class Embedding:
    """The encoder of a corpus and its precision.

    Attributes:
        model: Folder, hub id or bundled name.
        precision: Precision of the forward pass.
        pooling: As for `load_encoder`.
    """

    model: str
    precision: Literal["auto", "bf16", "fp32"]
    pooling: Pooling = "backbone"

    def embedder(self) -> Embedder:
        """Load the model."""
        from opencse.encoder import load_encoder
        from opencse.encoder.device import choose_device
        from opencse.encoder.embedder import Embedder

        device = choose_device()
        return Embedder(
            load_encoder(self.model, pooling=self.pooling, device=device),
            precision=self.precision,
            token_budget=1024 if device.type == "cpu" else 32768,  # the same batches on any number of cores
        )


def open_vectors(sentences: SentenceStore, embedding: Embedding, engine: Engine, *, progress: bool = True) -> Vectors:
    """Open the vectors of a corpus in the cache, and embed the shards that are missing.

    Each shard is written whole or not at all, so an interrupted run continues with the first missing shard.

    Args:
        sentences: The corpus.
        embedding: The model.
        engine: Runs the embedding of shards.
        progress: Show progress.
    """
    from opencse.foundation.progress import Phase

    embedder = embedding.embedder()
    vectors = Vectors(_folder(sentences, embedding, embedder))
    missing = [shard for shard in range(vectors.shards) if not vectors.has(shard)]
    if missing:
        done = len(sentences) - sum(stop - start for start, stop in map(vectors.span, missing))
        task = _EmbedShard(sentences, vectors, embedding, embedder)
        with Phase("embedding", total=len(sentences), unit="sentences", initial=done, show=progress) as phase:
            results = engine.map(task, missing) if engine.remote else ((shard, task(shard)) for shard in missing)
            for _, rows in results:  # in this process, the embedder's own threads use all cores
                phase.update(rows)
    return vectors


def _folder(sentences: SentenceStore, embedding: Embedding, embedder: Embedder) -> Path:
    from opencse.encoder.weights_hash import weights_hash

    chunks = -(-len(sentences) // CHUNK)
    meta: dict[str, Any] = {
        "version": _VERSION,
        "weights_sha256": weights_hash(embedder.model),
        "texts_sha256": sentences.texts_hash,
        "precision": embedder.precision,
        "prompt": embedder.prompt,
        "dimension": embedder.dimension,
        "rows": len(sentences),
        "shard_rows": CHUNK * -(-chunks // _SHARDS),
    }
    name = hashlib.blake2b(json.dumps(meta, sort_keys=True).encode(), digest_size=16).hexdigest()
    folder = cache_place("vectors", name)
    try:
        if read_json(folder / "meta.json") == meta:
            return folder
    except OpencseError:
        pass  # missing or damaged
    write_json(folder / "meta.json", meta)
    return folder


class _EmbedShard:
    """The task of a worker: embed one shard and write it; the model is opened in the worker."""

    def __init__(
        self, sentences: SentenceStore, vectors: Vectors, embedding: Embedding, embedder: Embedder | None = None
    ) -> None:
        self._sentences, self._vectors, self._embedding = sentences, vectors, embedding
        self._embedder = embedder

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_embedder": None}

    def open(self) -> None:
        if self._embedder is None:
            self._embedder = self._embedding.embedder()

    def __call__(self, shard: int) -> int:
        self.open()
        assert self._embedder is not None
        start, stop = self._vectors.span(shard)
        rows = np.empty((stop - start, self._vectors.dimension), dtype=np.float16)
        for first, texts in self._chunks(start, stop):
            rows[first - start : first - start + len(texts)] = unit_vectors(self._embedder.encode(texts))
        with replaced_file(self._vectors.path(shard)) as temporary, temporary.open("wb") as file:
            np.save(file, rows, allow_pickle=False)
        return stop - start

    def _chunks(self, start: int, stop: int) -> Iterator[tuple[int, list[str]]]:
        for first in range(start, stop, CHUNK):
            yield first, self._sentences.range(first, min(first + CHUNK, stop))
