"""Sentence embeddings that follow meaning instead of wording, learned without labels."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from opencse.version import __version__

if TYPE_CHECKING:
    from opencse.errors import OpencseError
    from opencse.integrations.trainer_loss import sentence_transformers_loss
    from opencse.pipeline.build import build
    from opencse.pipeline.check import check
    from opencse.pipeline.compare import compare
    from opencse.pipeline.compare_search import compare_search
    from opencse.pipeline.evaluate import evaluate
    from opencse.pipeline.listing import list_recipes
    from opencse.pipeline.probe import probe
    from opencse.pipeline.run import run
    from opencse.pipeline.train import train
    from opencse.recipes import load_recipe

_MODULES = {
    "OpencseError": "opencse.errors",
    "build": "opencse.pipeline.build",
    "check": "opencse.pipeline.check",
    "compare": "opencse.pipeline.compare",
    "compare_search": "opencse.pipeline.compare_search",
    "evaluate": "opencse.pipeline.evaluate",
    "list_recipes": "opencse.pipeline.listing",
    "load_recipe": "opencse.recipes",
    "probe": "opencse.pipeline.probe",
    "run": "opencse.pipeline.run",
    "sentence_transformers_loss": "opencse.integrations.trainer_loss",
    "train": "opencse.pipeline.train",
}
__all__ = [
    "OpencseError",
    "__version__",
    "build",
    "check",
    "compare",
    "compare_search",
    "evaluate",
    "list_recipes",
    "load_recipe",
    "probe",
    "run",
    "sentence_transformers_loss",
    "train",
]


def __getattr__(name: str) -> Any:
    """Import a public name on first use, so that `import opencse` itself stays fast."""
    if name not in _MODULES:
        raise AttributeError(f"module 'opencse' has no attribute '{name}'")
    value = getattr(importlib.import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    """Return the public names, for editors and notebooks."""
    return sorted(__all__)
