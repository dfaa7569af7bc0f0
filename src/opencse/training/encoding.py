"""The passes of the encoder: from a batch of tokens to the sentence vectors of all views."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from opencse.encoder.cutoff import embedding_cutoff
from opencse.encoder.dropout import dropout_rate
from opencse.encoder.packing import Packing
from opencse.encoder.prompts import TemplateDenoising
from opencse.foundation.draws import RowDraws
from opencse.foundation.tensors import move, true_cells
from opencse.losses import TokenOutputs
from opencse.training.batches import Batch, EncoderPass


@dataclass(frozen=True)
class Encoded:
    """What the encoder gives for this process's part of a batch.

    Attributes:
        vectors: Sentence vectors of all views, (views, rows, width); zero if a row lacks the view.
        tokens: Outputs at each token, of the views that were asked for.
    """

    vectors: Tensor
    tokens: Mapping[str, TokenOutputs] = field(default_factory=dict)


def encode(encoder: nn.Module, batch: Batch, *, whole: bool = False) -> Tensor:
    """Return the sentence vectors of all views, (views, rows, width); arguments as for `encode_batch`."""
    return encode_batch(encoder, batch, whole=whole).vectors


def encode_batch(
    encoder: nn.Module,
    batch: Batch,
    denoisers: Mapping[str, TemplateDenoising] | None = None,
    twice: bool = False,
    whole: bool = False,
    token_views: Sequence[str] = (),
) -> Encoded:
    """Encode all views of a batch.

    A module of the encoder may give the losses more than the sentence vector, as
    `training_embedding`.

    Args:
        encoder: The sentence encoder, or a wrapper of it.
        batch: This process's part of the batch.
        denoisers: Template denoising, by view.
        twice: Keep no activations, and encode each group again for its gradient, with the same
            dropout masks.
        whole: Return the vectors that `encoder.encode` gives, without what a module adds.
        token_views: Views whose outputs at each token are returned too.
    """
    encode_group = partial(_encode_group, encoder, whole)
    if twice:
        encode_group = partial(checkpoint, encode_group, use_reentrant=False)

    # One pass for each dropout rate and cut-off; its groups hold texts of similar length, of all
    # views. So vectors come in the order of the groups, and `slots` has the view and row of each.
    encoded = []
    states = []
    for part in batch.passes:
        first = 0
        for ids, mask, packing in part.groups:
            rows_of_group = slice(first, first + len(ids))
            draws = None if part.draws is None else part.draws[rows_of_group]
            vectors, outputs = encode_group(ids, mask, packing, part, draws)
            encoded.append(vectors)
            if token_views and outputs is not None:
                states.append(_real_tokens(outputs, part.lengths[rows_of_group]))
            first += len(ids)
    slots = torch.cat([part.slots for part in batch.passes])
    lengths = torch.cat([part.lengths for part in batch.passes])

    rows = torch.cat(encoded)
    for view, denoiser in (denoisers or {}).items():
        rows = _denoised(rows, denoiser, _rows_of(batch, view, slots), lengths)
    tokens = {}
    slot_of_token = slots.repeat_interleave(lengths)
    for view in token_views:
        tokens[view] = _tokens_of(batch, view, torch.cat(states), slot_of_token)
    return Encoded(_by_view(batch, rows, slots), tokens)


def _rows_of(batch: Batch, view: str, slots: Tensor) -> Tensor:
    """Return the places of a view among the slots of all views, int64 (n,), on the CPU."""
    return (slots // batch.rows == batch.views.index(view)).nonzero().squeeze(1)


def _denoised(rows: Tensor, denoiser: TemplateDenoising, chosen: Tensor, lengths: Tensor) -> Tensor:
    """Return the vectors, some of them without the vector of their template alone (PromptBERT)."""
    if not len(chosen):
        return rows
    delta = denoiser.delta(lengths[chosen] - len(denoiser.frame))
    delta = delta[:, : rows.shape[1]].to(rows.dtype)
    return rows.index_add(0, move(chosen, rows.device), -delta)


def _by_view(batch: Batch, rows: Tensor, slots: Tensor) -> Tensor:
    """Return the vectors in their slots, (views, rows, width); zero in those of missing views."""
    slotted = rows.new_zeros(len(batch.views) * batch.rows, rows.shape[1])
    slotted = slotted.index_copy(0, move(slots, rows.device), rows)
    return slotted.view(len(batch.views), batch.rows, -1)


def _real_tokens(outputs: Tensor, lengths: Tensor) -> Tensor:
    """Return the outputs (n, L, width) without padding, which is on the right, as (tokens, width).

    Args:
        outputs: The outputs.
        lengths: Number of tokens of each text, (n,), on the CPU: a mask would have to be read there.
    """
    places = torch.arange(outputs.shape[1], device="cpu")
    real = places < lengths[:, None]
    return outputs.flatten(0, 1).index_select(0, true_cells(real, outputs.device))


def _tokens_of(batch: Batch, view: str, states: Tensor, slots: Tensor) -> TokenOutputs:
    """Return the tokens of a view from those of all views.

    Args:
        batch: This process's part of the batch.
        view: The view.
        states: Vectors of all tokens of all views, (tokens, width).
        slots: The view x row slot of each token, (tokens,), on the CPU.
    """
    chosen = _rows_of(batch, view, slots)
    vectors = states.index_select(0, move(chosen, states.device))
    # Losses compute in fp32; tests compare in fp64.
    if vectors.dtype != torch.float64:
        vectors = vectors.float()
    return TokenOutputs(vectors, move(slots[chosen] % batch.rows, states.device))


def _encode_group(
    encoder: nn.Module,
    whole: bool,
    ids: Tensor,
    mask: Tensor,
    packing: Packing | None,
    part: EncoderPass,
    draws: RowDraws | None,
) -> tuple[Tensor, Tensor | None]:
    """Return the sentence vectors of a group (n, width), and its outputs at each token (n, L, width)."""
    features: dict[str, Any] = {"input_ids": ids, "attention_mask": mask}
    if packing is not None:
        features["packing"] = packing
    if part.prompt_length is not None:
        features["prompt_length"] = part.prompt_length
    kind, share = part.cutoff
    with (
        dropout_rate(encoder, part.dropout),
        embedding_cutoff(encoder, mask, packing, kind, share, draws),
    ):
        features = encoder(features)
    token_outputs = features.get("token_embeddings")
    if "training_embedding" in features and not whole:
        vectors: Tensor = features["training_embedding"]
        return vectors, token_outputs
    # Calling the modules does not cut the vectors as `encoder.encode` does.
    width = getattr(encoder, "truncate_dim", None)
    return features["sentence_embedding"][:, :width], token_outputs
