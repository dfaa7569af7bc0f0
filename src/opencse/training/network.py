"""Encoder, projector and the parameters of the losses as one trainable module."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from opencse.debias.meaning_block import block_of
from opencse.encoder.cutoff import embedding_cutoff
from opencse.encoder.dropout import dropout_rate
from opencse.encoder.packing import Packing
from opencse.encoder.prompts import TemplateDenoising
from opencse.foundation.tensors import move
from opencse.training.batches import Batch, EncoderPass
from opencse.training.loss_head import LossHead

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class Network(nn.Module):
    """The network that maps a batch of tokens to the loss.

    As one module, all parts are trained, clipped, checkpointed, synchronised between processes and
    put into evaluation mode together.

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
        """Set the mode of all parts; what stands before a meaning block is not trained, and has no dropout."""
        super().train(mode)
        if block_of(self.encoder) is not None:
            for module in list(self.encoder.children())[:-1]:
                module.eval()
        return self

    def forward(
        self, batch: Batch, step: int = 0
    ) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
        """Encode this process's part of a batch, and compute the loss; see `LossHead.forward`."""
        vectors = encode(self.encoder, batch, self._denoisers, self._encode_twice)
        return self.head(vectors, batch, step)


def encode(
    encoder: nn.Module,
    batch: Batch,
    denoisers: Mapping[str, TemplateDenoising] | None = None,
    twice: bool = False,
    whole: bool = False,
) -> Tensor:
    """Return the sentence vectors of all views, (views, rows, width); zero if a row lacks the view.

    Those of an encoder with a meaning block are [e ; z ; code ; φ], each of these with zeros behind
    it as long as e (`opencse.debias.meaning_loss`).

    Args:
        encoder: The sentence encoder, or a wrapper of it.
        batch: This process's part of the batch.
        denoisers: Template denoising, by view.
        twice: Keep no activations, and encode each group again for its gradient, with the same
            dropout masks.
        whole: Return the vectors that `encoder.encode` gives, also of an encoder with a meaning block.
    """
    width = getattr(encoder, "truncate_dim", None)

    def vectors_of(ids: Tensor, mask: Tensor, packing: Packing | None, part: EncoderPass) -> Tensor:
        features: dict[str, Any] = {"input_ids": ids, "attention_mask": mask}
        if packing is not None:
            features["packing"] = packing
        if part.prompt_length is not None:
            features["prompt_length"] = part.prompt_length
        with (
            dropout_rate(encoder, part.dropout),
            embedding_cutoff(encoder, mask, packing, *part.cutoff),
        ):
            features = encoder(features)
        vectors: Tensor = features["sentence_embedding"][:, :width]
        if "meaning_parts" in features and not whole:
            vectors = features["meaning_parts"]
        return vectors

    run = partial(checkpoint, vectors_of, use_reentrant=False) if twice else vectors_of
    rows = torch.cat([run(*group, part) for part in batch.passes for group in part.groups])
    slots, lengths = (
        torch.cat([getattr(part, name) for part in batch.passes]) for name in ("slots", "lengths")
    )
    for view, denoiser in (denoisers or {}).items():
        chosen = (slots // batch.rows == batch.views.index(view)).nonzero().squeeze(1)
        if len(chosen):
            delta = denoiser.delta(lengths[chosen] - len(denoiser.frame))
            delta = delta[:, : rows.shape[1]].to(rows.dtype)
            rows = rows.index_add(0, move(chosen, rows.device), -delta)
    slotted = rows.new_zeros(len(batch.views) * batch.rows, rows.shape[1])
    return slotted.index_copy(0, move(slots, rows.device), rows).view(
        len(batch.views), batch.rows, -1
    )
