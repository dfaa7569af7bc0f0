"""Probing of named models, and the short names under which their results are shown."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opencse.encoder.embedder import Embedder, Precision
from opencse.encoder.loading import is_sentence_transformer, load_encoder
from opencse.encoder.names import resolve
from opencse.encoder.precision_choice import describe, model_config
from opencse.encoder.weights_hash import pooling_name, weights_hash
from opencse.evaluation.probes.probe_data import ProbeData
from opencse.evaluation.probes.probe_suite import ProbeScores, ProbeSuite
from opencse.foundation.errors import OpencseError
from opencse.foundation.progress import note


def probe_models(
    models: Sequence[str], data: ProbeData, *, precision: Precision = "auto", pooling: str | None = None
) -> tuple[dict[str, ProbeScores], dict[str, dict[str, Any]]]:
    """Probe models one after another, with one in memory at a time.

    Args:
        models: Folders, hub ids, bundled names or folders of runs.
        data: What to probe on.
        precision: See `Embedder`.
        pooling: Pooling of encoders that define none.

    Returns:
        ProbeScores by short name, and for each what its figures depend on.
    """
    suite = ProbeSuite(data)
    scores: dict[str, ProbeScores] = {}
    settings: dict[str, dict[str, Any]] = {}
    for name, label in zip(models, short_names(models), strict=True):
        own = pooling is None or is_sentence_transformer(resolve(name))
        model = load_encoder(name, pooling="backbone" if own else str(pooling))
        note(f"probing {label} {describe(precision, model_config(model), model.device)}")
        embedder = Embedder(model, precision=precision, progress=f"encode {label}")
        scores[label] = suite(embedder)
        settings[label] = {
            "model": name,
            "weights sha256": weights_hash(model),
            "pooling": pooling_name(model),
            "dimension": embedder.dimension,
            "maximum length": model.max_seq_length,
            "prompt": embedder.prompt or "none",
            "precision": embedder.precision,
            "texts encoded": len(suite.texts),
            "seconds": round(scores[label].seconds, 1),
        }
    return scores, settings


def short_names(models: Sequence[str]) -> list[str]:
    """Return the shortest endings of the paths that are distinct, without a final `model`.

    Raises:
        OpencseError: A model is named twice.
    """
    parts = []
    for name in models:
        path = Path(name)
        pieces = path.resolve().parts if os.path.isdir(path) else path.parts
        parts.append(pieces[:-1] if pieces[-1:] == ("model",) and len(pieces) > 1 else pieces)
    if len(set(parts)) < len(parts):
        name = next(name for name, pieces in zip(models, parts, strict=True) if parts.count(pieces) > 1)
        raise OpencseError(f"the model {name} is named twice", "Name it once.")
    for count in range(1, max(map(len, parts), default=1)):
        short = ["/".join(pieces[-count:]) for pieces in parts]
        if len(set(short)) == len(short):
            return short
    return ["/".join(pieces) for pieces in parts]
