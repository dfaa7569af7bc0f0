"""Sentence embeddings that follow meaning instead of wording, learned without labels."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from opencse.errors import OpencseError as OpencseError
    from opencse.integrations.trainer_loss import sentence_transformers_loss as sentence_transformers_loss
    from opencse.pipeline import run as run
    from opencse.pipeline import train as train
    from opencse.recipes import load_recipe as load_recipe

_HOMES = {
    "OpencseError": "opencse.errors",
    "load_recipe": "opencse.recipes",
    "run": "opencse.pipeline",
    "sentence_transformers_loss": "opencse.integrations.trainer_loss",
    "train": "opencse.pipeline",
}
__all__ = ["OpencseError", "__version__", "load_recipe", "run", "sentence_transformers_loss", "train"]


def __getattr__(name: str) -> Any:
    """Import on first use: `import opencse` itself stays fast."""
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'opencse' has no attribute '{name}'")
