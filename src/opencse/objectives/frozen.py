"""Models and tensors that a term uses without training them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from torch import nn


class Frozen(nn.Module):
    """Holds a module that moves with the network, but is neither trained nor saved nor synchronised.

    Checkpoints would only repeat what is read from elsewhere at the start of every run. It keeps the mode (training or
    evaluation) that it came with.

    Args:
        held: The module; its parameters no longer require gradients.
    """

    def __init__(self, held: nn.Module) -> None:
        super().__init__()
        held.requires_grad_(False)
        self._held = (held,)  # in a tuple, where PyTorch does not look

    @property
    def module(self) -> nn.Module:
        """The module that is held."""
        return self._held[0]

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Frozen:
        self._held[0]._apply(fn, recurse)
        return cast(Frozen, super()._apply(fn, recurse))
