"""The network that is trained: from a batch of tokens to sentence vectors, and on to the loss."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from opencse.encoder.cutoff import embedding_cutoff
from opencse.encoder.dropout import dropout_rate
from opencse.encoder.packing import Packing
from opencse.encoder.prompts import TemplateDenoising
from opencse.foundation.draws import RowDraws
from opencse.foundation.tensors import move
from opencse.training.batches import Batch, EncoderPass
from opencse.training.loss_head import LossHead
from opencse.training.processes import sharing

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class Network(nn.Module):
    """Encoder and loss head as one module.

    So all parts are trained, clipped, checkpointed, synchronised between processes and put into
    evaluation mode together.

    Args:
        encoder: The sentence encoder; only this part is exported.
        head: Everything after it.
        denoisers: Template denoising, by view.
        encode_twice: See `encode`.
    """

    def __init__(
        self,
        encoder: SentenceTransformer,
        head: LossHead,
        denoisers: Mapping[str, TemplateDenoising] | None = None,
        encode_twice: bool = False,
    ) -> None:
        super().__init__()
        self._encode_twice = encode_twice
        self.encoder = encoder
        self.head = head
        self._denoisers = dict(denoisers or {})  # they have no weights

    def train(self, mode: bool = True) -> Network:
        """Set the mode of all parts; the frozen modules at the encoder's beginning stay without dropout."""
        super().train(mode)
        for module in self.encoder.children():
            if any(parameter.requires_grad for parameter in module.parameters()):
                break
            module.eval()
        return self

    def forward(
        self, batch: Batch, step: int = 0
    ) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
        """Encode this process's part of a batch, and compute the loss; see `LossHead.forward`."""
        vectors = encode(self.encoder, batch, self._denoisers, self._encode_twice)
        with sharing(batch.shares):
            return self.head(vectors, batch, step)


def encode(
    encoder: nn.Module,
    batch: Batch,
    denoisers: Mapping[str, TemplateDenoising] | None = None,
    twice: bool = False,
    whole: bool = False,
) -> Tensor:
    """Return the sentence vectors of all views, (views, rows, width); zero if a row lacks the view.

    A module of the encoder may give the losses more than the sentence vector, as
    `training_embedding`.

    Args:
        encoder: The sentence encoder, or a wrapper of it.
        batch: This process's part of the batch.
        denoisers: Template denoising, by view.
        twice: Keep no activations, and encode each group again for its gradient, with the same
            dropout masks.
        whole: Return the vectors that `encoder.encode` gives, without what a module adds.
    """
    encode_group = partial(_encode_group, encoder, whole)
    if twice:
        encode_group = partial(checkpoint, encode_group, use_reentrant=False)

    # One pass for each dropout rate and cut-off; its groups hold texts of similar length, of all views.
    encoded = []
    for part in batch.passes:
        first = 0
        for ids, mask, packing in part.groups:
            draws = None
            if part.draws is not None:
                draws = part.draws[first : first + len(ids)]
            encoded.append(encode_group(ids, mask, packing, part, draws))
            first += len(ids)
    rows = torch.cat(encoded)
    slots = torch.cat([part.slots for part in batch.passes])
    lengths = torch.cat([part.lengths for part in batch.passes])

    # PromptBERT subtracts the vector of the template alone.
    for view, denoiser in (denoisers or {}).items():
        chosen = (slots // batch.rows == batch.views.index(view)).nonzero().squeeze(1)
        if len(chosen):
            delta = denoiser.delta(lengths[chosen] - len(denoiser.frame))
            delta = delta[:, : rows.shape[1]].to(rows.dtype)
            rows = rows.index_add(0, move(chosen, rows.device), -delta)

    slotted = rows.new_zeros(len(batch.views) * batch.rows, rows.shape[1])
    slotted = slotted.index_copy(0, move(slots, rows.device), rows)
    return slotted.view(len(batch.views), batch.rows, -1)


def _encode_group(
    encoder: nn.Module,
    whole: bool,
    ids: Tensor,
    mask: Tensor,
    packing: Packing | None,
    part: EncoderPass,
    draws: RowDraws | None,
) -> Tensor:
    features: dict[str, Any] = {"input_ids": ids, "attention_mask": mask}
    if packing is not None:
        features["packing"] = packing
    if part.prompt_length is not None:
        features["prompt_length"] = part.prompt_length
    with (
        dropout_rate(encoder, part.dropout),
        embedding_cutoff(encoder, mask, packing, *part.cutoff, draws),
    ):
        features = encoder(features)
    if "training_embedding" in features and not whole:
        training_vectors: Tensor = features["training_embedding"]
        return training_vectors
    width = getattr(encoder, "truncate_dim", None)
    vectors: Tensor = features["sentence_embedding"][:, :width]
    return vectors
