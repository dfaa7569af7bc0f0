"""Models given as names, folders or loaded objects, resolved to a name or a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from opencse.encoder.export import save_encoder
from opencse.encoder.weights_hash import weights_hash
from opencse.foundation.cache import cache_place
from opencse.foundation.errors import OpencseError


def model_source(given: Any) -> str:
    """Return the name of a model; a loaded model is saved once to a folder in the cache.

    Args:
        given: A folder, a hub id, a bundled name, or a `SentenceTransformer`.

    Raises:
        OpencseError: The model is none of these.
    """
    if isinstance(given, str | Path):
        return str(given)
    from sentence_transformers import SentenceTransformer

    if not isinstance(given, SentenceTransformer):
        raise OpencseError(
            f"a model of the type {type(given).__name__} cannot be used",
            "Give a folder, a hub id, a bundled name or a SentenceTransformer.",
        )
    known = given.model_card_data.base_model or "model"
    folder = cache_place("inputs", weights_hash(given)[:32]) / Path(str(known)).name
    if not (folder / "modules.json").is_file():
        head = "" if known == "model" else f"---\nbase_model: {known}\n---\n"
        save_encoder(given, folder, head)
    return str(folder)
