"""Modules after the transformer: pooling to one sentence vector, and projectors between it and the loss."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import nn

if TYPE_CHECKING:
    from sentence_transformers.sentence_transformer.modules import Dense

POOLINGS = ("cls", "mean", "lasttoken", "first_last", "embeddings_last", "mask")


def pooling_modules(kind: str, transformer: Any, mask: int | None = None) -> list[torch.nn.Module]:
    """Return the sentence-transformers modules for a pooling, which follow the transformer.

    Args:
        kind: `cls`, `mean`, `lasttoken` (for decoders), `first_last` (the mean over tokens of the mean of the first and
            the last layer's output, as in SimCSE's evaluation since 2024), `embeddings_last` (the same with the
            embeddings in place of the first layer, as in the papers' tables) or `mask`: the mean over tokens, in which
            only the mask token has a weight.
        transformer: The `Transformer` module; `first_last` needs `output_hidden_states` in its configuration.
        mask: Id of the mask token, for `mask`.
    """
    from sentence_transformers.sentence_transformer.modules import Pooling, WeightedLayerPooling, WordWeights

    width = transformer.get_embedding_dimension()
    if kind in ("first_last", "embeddings_last"):
        layers, start = transformer.config.num_hidden_layers, int(kind == "first_last")
        mix = WeightedLayerPooling(width, num_hidden_layers=layers, layer_start=start)
        weights = torch.zeros(layers + 1 - start)
        weights[0] = weights[-1] = 1.0
        mix.layer_weights.data.copy_(weights)
        mix.layer_weights.requires_grad_(False)
        return [mix, Pooling(width, "mean")]
    if kind == "mask":
        # The words are ids: only their number and the weights matter.
        ids = [str(i) for i in range(transformer.config.vocab_size)]
        only_mask = WordWeights(ids, {str(mask): 1.0}, unknown_word_weight=0.0)
        return [only_mask.requires_grad_(False), Pooling(width, "mean")]
    return [Pooling(width, kind)]


def pools_the_mask(module: torch.nn.Module) -> bool:
    """Return whether a module is the word weighting of `mask` pooling: one token id has a weight."""
    weight = getattr(getattr(module, "emb_layer", None), "weight", None)
    return type(module).__name__ == "WordWeights" and weight is not None and int((weight != 0).sum()) == 1


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
