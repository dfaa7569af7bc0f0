"""Projectors between the sentence vector and the loss, for training only."""

from __future__ import annotations

from torch import nn


def build_projector(kind: str, width: int) -> nn.Module:
    """Return a new projector from (rows, width) to (rows, width).

    Args:
        kind: `none`; `simcse`, Linear + Tanh (SimCSE §3, `mlp_only_train`); or `diffcse`, two layers with BatchNorm
            over all rows of all views together (DiffCSE §3 and its code), which needs at least two rows.
        width: Size of the sentence vector.
    """
    if kind == "none":
        return nn.Identity()
    if kind == "simcse":
        layers = nn.Sequential(nn.Linear(width, width), nn.Tanh())
    else:
        layers = nn.Sequential(
            nn.Linear(width, 2 * width, bias=False),
            nn.BatchNorm1d(2 * width),
            nn.ReLU(),
            nn.Linear(2 * width, width, bias=False),
            nn.BatchNorm1d(width, affine=False),
        )
    for layer in layers:
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=0.02)  # as BERT initialises new layers
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
    return layers
