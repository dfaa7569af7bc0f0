"""From token vectors to one sentence vector, with modules that every sentence-transformers user can load."""

from __future__ import annotations

from typing import Any

import torch

POOLINGS = ("cls", "mean", "first_last", "mask")


def pooling_modules(kind: str, transformer: Any) -> list[torch.nn.Module]:
    """The core sentence-transformers modules that come after the transformer.

    Args:
        kind: `cls`, `mean`, `first_last` (the mean over tokens of the mean of the first and the last layer's output, as
            in SimCSE's evaluation since 2024) or `mask` (the last token, where a baked template has its mask).
        transformer: The `Transformer` module; `first_last` needs `output_hidden_states` in its configuration.
    """
    from sentence_transformers.sentence_transformer.modules import Pooling, WeightedLayerPooling

    width = transformer.get_embedding_dimension()
    if kind == "first_last":
        layers = transformer.config.num_hidden_layers
        mix = WeightedLayerPooling(width, num_hidden_layers=layers, layer_start=1)
        weights = torch.zeros(layers)
        weights[0] = weights[-1] = 1.0
        mix.layer_weights.data.copy_(weights)
        mix.layer_weights.requires_grad_(False)
        return [mix, Pooling(width, "mean")]
    return [Pooling(width, {"cls": "cls", "mean": "mean", "mask": "lasttoken"}[kind])]
