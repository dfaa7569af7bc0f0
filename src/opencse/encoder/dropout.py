"""Dropout rates of a model: read, set, and changed for one view."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch import nn

# Fields by which transformers' configurations set dropout in the encoder itself (not in task heads).
_CONFIG_FIELDS = (
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "hidden_dropout",
    "dropout",
    "attention_dropout",
    "embedding_dropout",
    "mlp_dropout",
    "resid_pdrop",
    "embd_pdrop",
    "attn_pdrop",
)
# Modules that keep an attention dropout rate as a plain number, not as an nn.Dropout (ModernBERT, NomicBERT, EuroBERT).
_RATE_ATTRIBUTE = "attention_dropout"


def _slots(model: nn.Module) -> list[tuple[nn.Module, str]]:
    """Return every (module, attribute) of `model` that holds a dropout rate."""
    slots: list[tuple[nn.Module, str]] = []
    for module in model.modules():
        if isinstance(module, nn.modules.dropout._DropoutNd):
            slots.append((module, "p"))
        elif isinstance(getattr(module, _RATE_ATTRIBUTE, None), float | int):
            slots.append((module, _RATE_ATTRIBUTE))
    return slots


def dropout_rates(model: nn.Module) -> list[float]:
    """Return the rates of all dropouts of a model, attention included, in module order.

    If all are 0 (or there are none), two passes of one sentence are identical and contrastive training without other
    views cannot work.
    """
    return [float(getattr(*slot)) for slot in _slots(model)]


@contextmanager
def dropout_rate(model: nn.Module, p: float | None) -> Iterator[None]:
    """Set the rate of *all* dropouts of a model, attention included, for the length of a `with` block.

    HiNCE gives its hard-negative view another rate than the other views; a view may also have none.

    Args:
        model: Any module.
        p: Rate in [0, 1]; None leaves the model's own rates.
    """
    before = [] if p is None else [(*slot, getattr(*slot)) for slot in _slots(model)]
    try:
        for module, name, _ in before:
            setattr(module, name, p)
        yield
    finally:
        for slot in before:
            setattr(*slot)


def dropout_config_overrides(config: Any, p: float) -> dict[str, float]:
    """Return the configuration fields that switch dropout on, to be set *before* the model is built.

    Some models (ModernBERT) replace a dropout of rate 0 by `nn.Identity` when they are built, so that it cannot be
    raised afterwards.

    Args:
        config: A transformers configuration.
        p: Rate in [0, 1].

    Returns:
        Field names and values for `from_pretrained(..., **overrides)`; empty if the configuration knows no dropout.
    """
    return {name: p for name in _CONFIG_FIELDS if isinstance(getattr(config, name, None), float | int)}


def set_dropout(transformer: Any, p: float) -> bool:
    """Set the dropout rate of a loaded sentence-transformers `Transformer` and of its configuration.

    Returns:
        Whether that is the same as building it with this rate. A model whose rate was 0 may have been built without
        dropouts, and is then left as it is.
    """
    config = transformer.auto_model.config
    fields = dropout_config_overrides(config, p)
    possible = all(getattr(config, name) for name in fields)
    if possible:
        vars(config).update(fields)
        set_rates(transformer, p)
    return possible


def set_rates(model: nn.Module, p: float) -> None:
    """Set the rate of all dropouts of a module, attention included; its configuration stays."""
    for slot in _slots(model):
        setattr(*slot, p)
