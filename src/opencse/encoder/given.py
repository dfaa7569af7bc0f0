"""A model that a user has in memory, as the folder that everything else loads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from opencse.encoder.export import save_encoder
from opencse.encoder.weights_hash import weights_hash
from opencse.errors import OpencseError
from opencse.io.cache import cache_place


def model_source(given: Any) -> str:
    """Return the name of a model: itself, or the folder in the cache to which a loaded one is saved once.

    Args:
        given: A folder, a hub id, a bundled name, or a `SentenceTransformer`.

    Raises:
        OpencseError: It is none of these.
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
