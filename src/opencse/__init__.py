"""Sentence embeddings that follow meaning instead of wording, learned without labels."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from opencse.version import __version__

if TYPE_CHECKING:
    from opencse.commands.build import build
    from opencse.commands.check import check
    from opencse.commands.compare import compare
    from opencse.commands.compare_search import compare_search
    from opencse.commands.evaluate import evaluate
    from opencse.commands.integrations.trainer_loss import sentence_transformers_loss
    from opencse.commands.probe import probe
    from opencse.commands.recipes import list_recipes
    from opencse.commands.run import run
    from opencse.commands.train import train
    from opencse.foundation.errors import OpencseError
    from opencse.recipes import load_recipe

_MODULES = {
    "OpencseError": "opencse.foundation.errors",
    "build": "opencse.commands.build",
    "check": "opencse.commands.check",
    "compare": "opencse.commands.compare",
    "compare_search": "opencse.commands.compare_search",
    "evaluate": "opencse.commands.evaluate",
    "list_recipes": "opencse.commands.recipes",
    "load_recipe": "opencse.recipes",
    "probe": "opencse.commands.probe",
    "run": "opencse.commands.run",
    "sentence_transformers_loss": "opencse.commands.integrations.trainer_loss",
    "train": "opencse.commands.train",
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
