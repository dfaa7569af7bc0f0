"""Sentences of one batch laid end to end, so that no computation is spent on padding.

A batch padded to its longest sentence wastes a fifth (length cap 32, encyclopaedic text) to more than half (no cap) of
an encoder's work. Every layer but attention treats tokens one by one, so the batch can be one long row of real tokens;
only attention has to know where sentences end, and `opencse.encoder.attention` does. The hidden states are those of
the padded batch, up to rounding.
"""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

ATTENTION = "opencse_dropout"
"""Name of `opencse.encoder.attention.dropout_attention` in transformers' registry."""


@dataclass(frozen=True)
class Packing:
    """Where each token of a padded (B, L) batch stands in the packed row of its T real tokens.

    Attributes:
        mask: True for real tokens, (B, L).
        tokens: Index of each real token in the flattened padded batch, (T,).
        slots: Index in the packed row of each cell of the padded batch, 0 for padding, (B, L).
    """

    mask: Tensor
    tokens: Tensor
    slots: Tensor

    @classmethod
    def of(cls, attention_mask: Tensor) -> Packing:
        """Lays out a batch, given its attention mask (B, L) of 1 for real tokens and 0 for padding."""
        mask = attention_mask.bool()
        flat = mask.flatten()
        return cls(mask=mask, tokens=flat.nonzero()[:, 0], slots=((flat.cumsum(0) - 1) * flat).view(mask.shape))

    @property
    def positions(self) -> Tensor:
        """Position of each packed token within its sentence, from 0, (1, T)."""
        return self.pack(self.mask.long().cumsum(1) - 1)

    def pack(self, values: Tensor) -> Tensor:
        """Real tokens' values of a padded (B, L, ...) tensor as (1, T, ...)."""
        return values.flatten(0, 1).index_select(0, self.tokens).unsqueeze(0)

    def unpack(self, values: Tensor) -> Tensor:
        """A packed (1, T, ...) tensor as padded (B, L, ...), zero at padding."""
        padded = values.new_zeros(self.mask.numel(), *values.shape[2:])
        return padded.index_copy(0, self.tokens, values[0]).view(*self.mask.shape, *values.shape[2:])


def _first_position(model: nn.Module) -> int:
    """First position id: RoBERTa and its relatives count from `padding_idx + 1`, all others from 0."""
    table = getattr(getattr(model, "embeddings", None), "position_embeddings", None)
    padding = getattr(table, "padding_idx", None)
    return 0 if padding is None else int(padding) + 1


def packed_forward(
    model: nn.Module, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
) -> Tensor:
    """Runs `model` on the real tokens only.

    Args:
        model: A transformers encoder for which `supports_packing` holds, or a wrapper that has it as `.module` (DDP).
        input_ids: Token ids, (B, L).
        attention_mask: 1 for real tokens, 0 for padding, (B, L).
        token_type_ids: Segment ids, (B, L), where the model has segments.

    Returns:
        Last hidden states, (B, L, d), zero at padding.
    """
    packing = Packing.of(attention_mask)
    inputs: dict[str, Any] = {
        "input_ids": packing.pack(input_ids),
        "position_ids": packing.positions + _first_position(getattr(model, "module", model)),
        "packing": packing,
    }
    if token_type_ids is not None:
        inputs["token_type_ids"] = packing.pack(token_type_ids)
    return packing.unpack(model(**inputs).last_hidden_state)


@torch.no_grad()
def supports_packing(model: nn.Module) -> bool:
    """Whether `packed_forward` gives this model's own hidden states: tried out, not assumed.

    Args:
        model: A transformers encoder, after `opencse.encoder.attention.use_dropout_attention`.

    Returns:
        False for models whose attention does not receive the layout (MPNet, DeBERTa), that have no position ids to
        set, or that attend within a window (ModernBERT): sentences of one row would see each other.
    """
    config: Any = getattr(model, "config", None)
    if getattr(config, "_attn_implementation", None) != ATTENTION:
        return False
    if "position_ids" not in inspect.signature(model.forward).parameters:
        return False
    if "sliding_attention" in (getattr(config, "layer_types", None) or ()):
        return False
    words = [i for i in range(7) if i != config.pad_token_id][:6]
    device = next(model.parameters()).device
    ids, mask = torch.tensor(words, device=device).view(2, 3), torch.tensor([[1, 1, 1], [1, 1, 0]], device=device)
    training = model.training
    model.eval()
    try:
        padded = model(input_ids=ids, attention_mask=mask).last_hidden_state
        packed = packed_forward(model, ids, mask)
    except TypeError:  # a forward that passes no further arguments on
        return False
    finally:
        model.train(training)
    return bool(torch.allclose(packed[mask.bool()], padded[mask.bool()], rtol=1e-3, atol=1e-4))
