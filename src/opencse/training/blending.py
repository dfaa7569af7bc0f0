"""Linear interpolation between the weights before and after training.

Interpolated weights lose less of what the model could do before than a run that is stopped early, at the same gain
(WiSE-FT: Wortsman et al., Robust fine-tuning of zero-shot models, CVPR 2022).
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

_PARTS = 20
"""Interpolation coefficients are multiples of 1/20."""


def copy_weights(network: nn.Module) -> dict[str, Tensor]:
    """Return copies of all parameters and buffers by name."""
    return {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}


@torch.no_grad()
def interpolate(network: nn.Module, start: dict[str, Tensor], end: dict[str, Tensor], share: float) -> None:
    """Set the weights to `start + share * (end - start)`; tensors of integers are taken from `end`."""
    for name, tensor in network.state_dict().items():
        if tensor.is_floating_point():
            tensor.copy_(torch.lerp(start[name], end[name], share))
        else:
            tensor.copy_(end[name])


def longest_way(network: nn.Module, start: dict[str, Tensor], acceptable: Callable[[], bool]) -> float:
    """Move the weights back towards `start` until they are acceptable.

    The trained weights are tried first. Then bisection finds an interpolation coefficient that is acceptable while the
    next one is not, in at most six trials. Where what is acceptable comes and goes along the way, a larger coefficient
    may be acceptable, too.

    Args:
        network: The network with the trained weights; it has the accepted weights afterwards.
        start: The weights before training (`copy_weights`).
        acceptable: Returns whether the current weights are acceptable; called once for each coefficient that is tried.

    Returns:
        The coefficient of the accepted weights: 1 for the trained ones, 0 if only those before training are left.
    """
    if acceptable():
        return 1.0
    end = copy_weights(network)
    kept, refused = 0, _PARTS
    while refused - kept > 1:
        middle = (kept + refused) // 2
        interpolate(network, start, end, middle / _PARTS)
        kept, refused = (middle, refused) if acceptable() else (kept, middle)
    interpolate(network, start, end, kept / _PARTS)
    return kept / _PARTS
