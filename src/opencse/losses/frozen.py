"""Modules that a term uses without training them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from torch import nn


class Frozen(nn.Module):
    """Container of a module that moves with the network, but is not trained, saved or synchronised.

    Its weights are read again at the start of every run, so checkpoints leave them out. The module keeps its mode
    (training or evaluation).

    Args:
        held: The module; its parameters will not require gradients.
    """

    def __init__(self, held: nn.Module) -> None:
        super().__init__()
        held.requires_grad_(False)
        self._held = (held,)  # in a tuple, so that PyTorch does not register it

    @property
    def module(self) -> nn.Module:
        """The contained module."""
        return self._held[0]

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Frozen:
        self._held[0]._apply(fn, recurse)
        return cast(Frozen, super()._apply(fn, recurse))
