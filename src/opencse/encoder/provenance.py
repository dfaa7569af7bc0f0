"""Provenance of a model: the hub id of its base model and its licence, as far as its folder says."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

_BUNDLED = {"minilm": ("sentence-transformers/all-MiniLM-L6-v2", "apache-2.0")}


def base_model(name: str | Path) -> tuple[str | None, str | None]:
    """Return the hub id of the base model and the licence; None if unknown.

    Args:
        name: A hub id, a bundled name, or a folder, whose model card is read.
    """
    if str(name) in _BUNDLED:
        return _BUNDLED[str(name)]
    folder = Path(name)
    if not folder.is_dir():
        return (str(name) if re.fullmatch(r"\w[\w.-]*(/[\w.-]+)?", str(name)) else None), None
    for card in (folder / "README.md", folder / "model" / "README.md"):
        if card.is_file():
            return _of_card(card)
    return None, None


def _of_card(card: Path) -> tuple[str | None, str | None]:
    import yaml
    from huggingface_hub import ModelCard

    try:
        found: Any = ModelCard(card.read_text(encoding="utf-8"), ignore_metadata_errors=True).data
    except (ValueError, yaml.YAMLError):
        return None, None
    base = found.base_model[0] if isinstance(found.base_model, list) and found.base_model else found.base_model
    return (base if isinstance(base, str) else None), (found.license if isinstance(found.license, str) else None)
