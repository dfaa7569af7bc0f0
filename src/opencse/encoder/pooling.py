"""Pooling of token vectors to one sentence vector, with core sentence-transformers modules."""

from __future__ import annotations

from typing import Any

import torch

POOLINGS = ("cls", "mean", "first_last", "embeddings_last", "mask")


def pooling_modules(kind: str, transformer: Any, mask: int | None = None) -> list[torch.nn.Module]:
    """Return the sentence-transformers modules for a pooling, which follow the transformer.

    Args:
        kind: `cls`, `mean`, `first_last` (the mean over tokens of the mean of the first and the last layer's output, as
            in SimCSE's evaluation since 2024), `embeddings_last` (the same with the embeddings in place of the first
            layer, as in the papers' tables) or `mask`: the mean over tokens, in which only the mask token has a
            weight.
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
