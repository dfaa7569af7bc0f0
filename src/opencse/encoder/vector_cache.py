"""Vectors of a model for a set of texts, cached on disk, because many runs measure the same untouched backbone."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from opencse.encoder.embedder import Embedder
from opencse.encoder.weights_hash import weights_hash
from opencse.foundation.stores import CachedStore


def cached_vectors(embedder: Embedder, texts: Sequence[str]) -> np.ndarray:
    """Return `embedder.encode(texts)`, float32 (n, d), from the cache if possible; it takes 4 n d bytes.

    The key is a hash of the model, the prompt, the precision and the texts in order.
    """
    import pyarrow as pa

    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little") + data)
    key = [weights_hash(embedder.model), embedder.prompt, embedder.precision, digest.hexdigest()]
    cached = CachedStore("vectors", key)
    if cached.missing:
        with cached.writer({"vectors": pa.list_(pa.float32(), embedder.dimension)}) as writer:
            writer.add(embedder.encode(texts))
    return cached.open().columns["vectors"].values.copy()
