"""Measuring the untouched backbone and the trained model on the same data."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import numpy as np

from opencse.encoder import load_encoder
from opencse.encoder.embedder import Embedder, Precision
from opencse.encoder.vector_cache import cached_vectors
from opencse.evaluation.compatibility import StoredVectors, stored_vectors
from opencse.io.corpus import read_texts
from opencse.probing import Findings, Material, Prober
from opencse.recipes import Recipe

_STORED = 1000  # sentences of the corpus whose old and new vectors are compared


def probe_before_and_after(
    recipe: Recipe, backbone: str | Path, model: Path, material: Material
) -> dict[str, Findings]:
    """Probe both models; each encodes every distinct text once, the backbone once for all runs."""
    precision: Precision = "auto" if recipe.training.precision == "fp16" else recipe.training.precision
    name = Path(str(backbone)).name
    trained = f"{name} + {recipe.name}"

    def untouched(texts: Sequence[str]) -> np.ndarray:
        encoder = load_encoder(backbone, **recipe.pooling)
        return cached_vectors(Embedder(encoder, precision=precision, progress=f"evaluating {name}"), texts)

    prober = Prober(material)
    before = prober(untouched)
    after = prober(Embedder(load_encoder(model), precision=precision, progress=f"evaluating {trained}"))
    return {name: before, trained: after}


def measure_stored_vectors(recipe: Recipe, backbone: str, model: Path, corpus: Path) -> StoredVectors:
    """Measure whether vectors of the backbone can stay in an index beside those of the trained model."""
    texts = list(dict.fromkeys(islice(read_texts(corpus), _STORED)))
    old = cached_vectors(Embedder(load_encoder(backbone, **recipe.pooling)), texts)
    return stored_vectors(old, Embedder(load_encoder(model))(texts))
