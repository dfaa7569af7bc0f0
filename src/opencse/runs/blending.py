"""Between the weights that a run began with and those that it came to.

The straight line between a model and its fine-tuned self trades what was learned for what was known before, and does so
better than stopping early (Wortsman et al., Robust fine-tuning of zero-shot models, CVPR 2022).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

SHARES = tuple(share / 20 for share in range(20, 0, -1))
"""How much of the way is tried, from all of it down to a twentieth."""


def copy_weights(network: nn.Module) -> dict[str, Tensor]:
    """Return all parameters and buffers, as they are now."""
    return {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}


@torch.no_grad()
def interpolate(network: nn.Module, start: dict[str, Tensor], end: dict[str, Tensor], share: float) -> None:
    """Give the network the weights at this share of the way from `start` to `end`; what is no float is the end's."""
    for name, tensor in network.state_dict().items():
        if tensor.is_floating_point():
            tensor.copy_(torch.lerp(start[name], end[name], share))
        else:
            tensor.copy_(end[name])


@torch.no_grad()
def add(network: nn.Module, change: Mapping[str, Tensor]) -> None:
    """Add to the weights of these names."""
    weights = network.state_dict()
    for name, tensor in change.items():
        weights[name].add_(tensor.to(weights[name].device))


def longest_way(network: nn.Module, start: dict[str, Tensor], acceptable: Callable[[], bool]) -> float:
    """Keep as much of the training as is acceptable.

    Shares of the way are tried one after another, all of it first, until one is acceptable.

    Args:
        network: Holds the trained weights; holds those that are kept afterwards.
        start: The weights that the training began with (`copy_weights`).
        acceptable: Judges the network as it is; called once for each share.

    Returns:
        The share of the way that was kept, 0 where nothing of it could be.
    """
    end = copy_weights(network)
    for share in SHARES:
        if share < 1:
            interpolate(network, start, end, share)
        if acceptable():
            return share
    interpolate(network, start, end, 0.0)
    return 0.0
