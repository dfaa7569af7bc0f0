"""Token averages of several hidden layers, concatenated: features of a frozen encoder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

from opencse.errors import OpencseError


class LayerMeans(nn.Module):
    """Token averages of chosen layers, each scaled to length 1, concatenated.

    Args:
        layers: Indices into the hidden states; 0 is the embedding layer.
        width: Size of one hidden state.
    """

    def __init__(self, layers: Sequence[int], width: int) -> None:
        super().__init__()
        self.layers, self.width = tuple(layers), width

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        """Set `sentence_embedding` (n, layers x width) from `all_layer_embeddings` and `attention_mask`."""
        states = features["all_layer_embeddings"]
        mask = features["attention_mask"].unsqueeze(-1).to(torch.float32)
        count = mask.sum(dim=1).clamp(min=1)
        means: list[Tensor] = [(states[i].float() * mask).sum(dim=1) / count for i in self.layers]
        return {**features, "sentence_embedding": torch.cat([F.normalize(mean, dim=-1) for mean in means], dim=-1)}

    def get_config_dict(self) -> dict[str, Any]:
        """Return the settings that determine the output."""
        return {"layers": list(self.layers), "width": self.width}

    def get_embedding_dimension(self) -> int:
        """Return the width of the concatenation."""
        return len(self.layers) * self.width


def with_layer_means(encoder: SentenceTransformer, depths: Sequence[float]) -> SentenceTransformer:
    """Return an encoder that shares the transformer of `encoder` and ends in `LayerMeans`.

    The transformer then outputs all hidden states, which costs memory: pass an encoder that is not trained.

    Args:
        encoder: An encoder whose first module is a transformer.
        depths: Relative depths of the layers: 1 is the last layer, 0 the embedding layer.

    Raises:
        OpencseError: The first module is not a transformer with hidden layers.
    """
    transformer: Any = encoder[0]
    config = getattr(getattr(transformer, "auto_model", None), "config", None)
    count, width = getattr(config, "num_hidden_layers", None), getattr(config, "hidden_size", None)
    if config is None or count is None or width is None:
        raise OpencseError(f"the model begins with a {type(transformer).__name__}, which has no hidden layers to read")
    config.output_hidden_states = True
    layers = dict.fromkeys(round(depth * count) for depth in depths)
    model = SentenceTransformer(modules=[transformer, LayerMeans(list(layers), width)], device=str(encoder.device))
    model.prompts, model.default_prompt_name = encoder.prompts, encoder.default_prompt_name
    return model
