"""The family of a backbone, which decides its published settings; read from the configuration, never from the name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

# family: (model type, hidden size, layers)
FAMILIES: dict[str, tuple[str, int, int]] = {
    "bert-base": ("bert", 768, 12),
    "bert-large": ("bert", 1024, 24),
    "roberta-base": ("roberta", 768, 12),
    "roberta-large": ("roberta", 1024, 24),
    "minilm": ("bert", 384, 6),
    "mini-mlm": ("bert", 256, 4),
}


def family_of(config: Mapping[str, Any]) -> str:
    """Return the family of a transformers configuration, or `other`."""
    shape = (config.get("model_type"), config.get("hidden_size"), config.get("num_hidden_layers"))
    return next((name for name, known in FAMILIES.items() if known == shape), "other")
