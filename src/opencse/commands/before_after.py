"""Scores of the untouched backbone and the trained model on the same data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from opencse.encoder import load_encoder
from opencse.encoder.backbone import Backbone
from opencse.encoder.embedder import Embedder, Precision
from opencse.encoder.vector_cache import cached_vectors
from opencse.evaluation.compatibility import StoredVectors, stored_vectors
from opencse.evaluation.development import sts_text
from opencse.evaluation.probes import ProbeData, ProbeScores, ProbeSuite, load_probe_data
from opencse.recipes import Recipe
from opencse.text import demo


def read_probe_data(data: str | Path | None, pairs: str | Path | None) -> ProbeData:
    """Read what both models are probed on; the arguments are those of `opencse.run`."""
    return load_probe_data(data=data, pairs=[] if pairs is None else [demo.pairs(pairs)], text=sts_text(data))


def probe_before_and_after(recipe: Recipe, backbone: Backbone, model: Path, data: ProbeData) -> dict[str, ProbeScores]:
    """Probe both models; vectors of the untouched backbone are cached between runs."""
    precision: Precision = "auto" if recipe.training.precision == "fp16" else recipe.training.precision
    name = Path(backbone.name).name
    trained = f"{name} + {recipe.name}"

    def untouched(texts: Sequence[str]) -> np.ndarray:
        encoder = backbone.encoder(**recipe.pooling)
        return cached_vectors(Embedder(encoder, precision=precision, progress=f"evaluating {name}"), texts)

    suite = ProbeSuite(data)
    before = suite(untouched)
    after = suite(Embedder(load_encoder(model), precision=precision, progress=f"evaluating {trained}"))
    return {name: before, trained: after}


def measure_stored_vectors(recipe: Recipe, backbone: Backbone, model: Path, texts: Sequence[str]) -> StoredVectors:
    """Measure on some texts whether stored vectors of the backbone stay usable with the trained model."""
    old = cached_vectors(Embedder(backbone.encoder(**recipe.pooling)), texts)
    return stored_vectors(old, Embedder(load_encoder(model))(texts))
