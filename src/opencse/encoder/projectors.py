"""Projectors between the sentence vector and the loss: for training only, or as a part of the encoder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import nn

if TYPE_CHECKING:
    from sentence_transformers.sentence_transformer.modules import Dense


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
    _initialise(layers)
    return layers


def exported_projector(width: int) -> Dense:
    """Return the `simcse` projector as a module of sentence-transformers, which is saved with the encoder."""
    from sentence_transformers.sentence_transformer.modules import Dense

    dense = Dense(width, width, activation_function=nn.Tanh())
    _initialise(dense)
    return dense


def _initialise(network: nn.Module) -> None:
    """Give new layers the weights that BERT begins with."""
    for layer in network.modules():
        if isinstance(layer, nn.Linear):
            nn.init.normal_(layer.weight, std=0.02)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)
