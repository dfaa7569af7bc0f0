"""The vectors of one model for one set of texts, kept on disk: an untouched backbone is measured before many a run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence

import numpy as np

from opencse.encoder.embedder import Embedder
from opencse.encoder.weights_hash import weights_hash
from opencse.io.cache import sealed_store


def cached_vectors(embedder: Embedder, texts: Sequence[str]) -> np.ndarray:
    """As `embedder.encode(texts)`, float32 (n, d), computed once; 4 n d bytes below `opencse.io.cache.cache_root`.

    The key is a hash of the model, of the prompt, of the precision and of the texts in their order.
    """
    digest = hashlib.blake2b(digest_size=16)
    digest.update(json.dumps([weights_hash(embedder.model), embedder.prompt, embedder.precision]).encode())
    for text in texts:
        data = text.encode("utf-8", "surrogatepass")
        digest.update(len(data).to_bytes(8, "little") + data)
    folder = sealed_store(
        "vectors", digest.hexdigest(), lambda folder: np.save(folder / "vectors.npy", embedder.encode(texts))
    )
    return np.load(folder / "vectors.npy", allow_pickle=False)
