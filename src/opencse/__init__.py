"""Sentence embeddings that follow meaning instead of wording, learned without labels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencse.foundation.lazy import public_names
from opencse.version import __version__

if TYPE_CHECKING:
    from opencse.commands.build import build
    from opencse.commands.check import check
    from opencse.commands.compare import compare, compare_search
    from opencse.commands.evaluate import evaluate
    from opencse.commands.integrations.trainer_loss import sentence_transformers_loss
    from opencse.commands.probe import probe
    from opencse.commands.recipes import list_recipes
    from opencse.commands.reproduce import reproduce
    from opencse.commands.run import run
    from opencse.commands.train import train
    from opencse.debias.reranker import Reranker
    from opencse.foundation.errors import OpencseError
    from opencse.recipes import load_recipe

__all__ = [
    "OpencseError",
    "Reranker",
    "__version__",
    "build",
    "check",
    "compare",
    "compare_search",
    "evaluate",
    "list_recipes",
    "load_recipe",
    "probe",
    "reproduce",
    "run",
    "sentence_transformers_loss",
    "train",
]

__getattr__ = public_names(__name__)


def __dir__() -> list[str]:
    """Return the public names, for editors and notebooks."""
    return sorted(__all__)
