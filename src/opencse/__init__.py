"""Sentence embeddings that follow meaning instead of wording, learned without labels."""

from __future__ import annotations

# Before everything else, because Ctrl-C may come at any time.
from opencse.foundation.first_moment import answer_interrupts, started_as_command

if started_as_command():
    answer_interrupts()

from typing import TYPE_CHECKING

from opencse.foundation.lazy import lazy_names
from opencse.foundation.plugins import MODULES
from opencse.losses import LOSSES
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

__getattr__ = lazy_names(__name__)

# The meaning block registers its loss and its module as a plug-in from outside would.
LOSSES["meaning"] = "opencse.debias.meaning_loss:MeaningLoss"  # type: ignore[assignment]
for _type in (
    "meaning_block.MeaningBlock",  # the copy of its file in a model's folder
    "opencse.debias.meaning_block.MeaningBlock",
    "opencse.encoder.meaning_block.MeaningBlock",  # as saved by version 0.3
):
    MODULES[_type] = "opencse.debias.meaning_block:MeaningBlock"

# BERT-flow is a module of a saved model too.
for _type in ("flow.SentenceFlow", "opencse.encoder.flow.SentenceFlow"):
    MODULES[_type] = "opencse.encoder.flow:SentenceFlow"


def __dir__() -> list[str]:
    """Return the public names, for editors and notebooks."""
    return sorted(__all__)
