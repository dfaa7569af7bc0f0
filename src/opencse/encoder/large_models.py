"""What large models train with: low-rank adapters (`peft`, extra `lora`), and layers computed again for gradients."""

from __future__ import annotations

import importlib.util
import warnings
from typing import Any

from torch import nn

from opencse.encoder.dropout import checkpoint_contexts
from opencse.foundation.errors import OpencseError


def require_peft() -> None:
    """Raise an `OpencseError` if `peft` is not installed."""
    if importlib.util.find_spec("peft") is None:
        raise OpencseError("encoder.lora needs the package peft", "pip install 'opencse[lora]'")


def add_lora(transformer: nn.Module, rank: int, alpha: int | None, dropout: float) -> Any:
    """Put adapters into a transformer, in place, and freeze the rest; the arguments are those of a recipe's `Lora`.

    Returns:
        What undoes it: `merge_and_unload` adds the adapters to the weights, in place.

    Raises:
        OpencseError: `peft` is not installed.
    """
    require_peft()
    from peft import LoraConfig, LoraModel

    config = LoraConfig(r=rank, lora_alpha=alpha or 2 * rank, lora_dropout=dropout, target_modules="all-linear")
    return LoraModel(transformer, config, "default")


def keep_inputs_only(transformer: Any, encoder: nn.Module, name: str) -> None:
    """Let the layers of a transformer be computed again for the gradient (`Training.gradient_checkpointing`).

    Raises:
        OpencseError: Its class does not support that.
    """
    settings = {"use_reentrant": False, "context_fn": checkpoint_contexts(encoder)}
    try:
        with warnings.catch_warnings(action="ignore", category=FutureWarning):  # transformers 5.2x renames it
            transformer.gradient_checkpointing_enable(settings)
    except ValueError as error:
        raise OpencseError(
            f"{name}: a {type(transformer).__name__} cannot do gradient checkpointing",
            "Set training.micro_batch instead.",
        ) from error
