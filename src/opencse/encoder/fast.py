"""Fast training steps: fast dropout, attention and packing in one call."""

from __future__ import annotations

from torch import nn
from transformers import PreTrainedModel

from opencse.encoder.attention import use_dropout_attention
from opencse.encoder.dropout import use_fast_dropout
from opencse.encoder.packing import use_packing


def prepare_for_training(encoder: nn.Module) -> bool:
    """Give an encoder fast dropout masks, fast attention and packed batches, in place.

    Only what a model supports is changed. Weights, state dicts, saved configurations and results in evaluation mode
    stay the same; in training mode the dropout masks differ from PyTorch's for the same seed.

    Args:
        encoder: A `SentenceTransformer`, a transformers encoder or a module with such encoders.

    Returns:
        Whether all transformers in `encoder` compute packed batches; if not, length groups
        (`opencse.training.grouping`) are the next best way to reduce padding.
    """
    use_fast_dropout(encoder)
    packed: list[bool] = []
    for module in encoder.modules():
        if isinstance(module, PreTrainedModel) and hasattr(module, "embeddings"):
            use_dropout_attention(module)
            packed.append(use_packing(module))
    return bool(packed) and all(packed)
