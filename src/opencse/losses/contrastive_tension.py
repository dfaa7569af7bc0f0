"""Contrastive Tension: two independent encoders agree on one sentence and disagree on two different ones."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from opencse.foundation.numbers import check_least
from opencse.foundation.tensors import move, true_cells
from opencse.losses.base import (
    Context,
    Embeddings,
    Loss,
    LossBuildContext,
    LossModule,
    LossOutput,
)


@dataclass(frozen=True, kw_only=True)
class ContrastiveTensionLoss(Loss):
    r"""Binary cross-entropy on the dot products of two encoders that start from the same weights.

    .. math:: L = -\frac{1}{n} \sum_i y_i \log \sigma(f_1(s_i) \cdot f_2(s'_i))
        + (1 - y_i) \log (1 - \sigma(f_1(s_i) \cdot f_2(s'_i)))

    y is 1 if s and s' are the same sentence. Source: Carlsson et al., Semantic Re-tuning with
    Contrastive Tension (ICLR 2021), §4. The sentences of a batch are taken in groups of one
    positive and K negatives. The second encoder reads the first sentence of each group as it is,
    and the others shifted by one, so that no negative meets itself; the authors draw two sentences
    for each negative. The first encoder is the one that is exported.

    Attributes:
        anchor: View of the sentences.
        negatives: K, the number of negative pairs for each positive one.

    Example:
        >>> loss = ContrastiveTensionLoss(negatives=7)
        >>> loss.views, loss.tokens
        (('anchor',), ('anchor',))
    """

    kind: ClassVar[str] = "contrastive_tension"
    view_fields: ClassVar[tuple[str, ...]] = ("anchor",)
    compares_embeddings: ClassVar[bool] = False

    anchor: str = "anchor"
    negatives: int = 7

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, 1, "negatives")

    @property
    def tokens(self) -> tuple[str, ...]:
        """The sentences, which the second encoder reads too."""
        return (self.anchor,)

    def module(self, build: LossBuildContext) -> LossModule:
        """Return the second encoder, a copy of the first with its initial weights."""
        return SecondEncoder(build.encoder, build.width)

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; one more pass, with a gradient, over the rows of this process."""
        second: SecondEncoder = context.modules[self.name]
        ids, mask = context.tokens[self.anchor]
        # Pairs are made in the global batch, so that any number of processes makes the same.
        second_vectors = context.processes.gather_trained(second.rows(ids, mask, context))
        rows = context.rows(present, self.anchor)
        if len(rows) == 0:
            return LossOutput(embeddings[self.anchor].sum() * 0 + second_vectors.sum() * 0)

        first_vectors = embeddings[self.anchor][rows]
        partner, same = paired_sentences(len(rows), self.negatives)
        partners = second_vectors[rows][move(partner, context.device)]
        labels = move(same, context.device).to(first_vectors.dtype)
        products = (first_vectors * partners.to(first_vectors.dtype)).sum(dim=1)
        value = F.binary_cross_entropy_with_logits(products, labels)
        right = (products > 0) == labels.bool()
        return LossOutput(value, {"accuracy": right.to(products.dtype).mean()})


def paired_sentences(count: int, negatives: int) -> tuple[Tensor, Tensor]:
    """Return the partner of each of some sentences, and whether it is the sentence itself.

    Args:
        count: Number of sentences.
        negatives: Number of negative pairs for each positive one.

    Returns:
        Row numbers (count,), and labels (count,) bool.

    Example:
        >>> paired_sentences(4, negatives=3)
        (tensor([0, 2, 3, 1]), tensor([ True, False, False, False]))
    """
    # On the CPU, whatever the default device is: the numbers are read there.
    partner = torch.arange(count, device="cpu")
    same = partner % (negatives + 1) == 0
    different = partner[~same]
    # There is nothing to exchange it with, so it meets the first sentence.
    if len(different) == 1:
        partner[different] = 0
    else:
        partner[~same] = different.roll(-1)
    return partner, same


class SecondEncoder(LossModule):
    """A trainable copy of the encoder.

    Args:
        encoder: A sequence of modules from features to features.
        width: Size of the sentence vectors.
    """

    def __init__(self, encoder: nn.Module, width: int) -> None:
        super().__init__()
        self.width = width
        parts: Any = encoder
        self.encoder = nn.Sequential(*(copy.deepcopy(part) for part in parts))

    def forward(self, ids: Tensor, mask: Tensor, device: torch.device) -> Tensor:
        """Return the sentence vectors (n, width) of tokens (n, L) on the CPU."""
        inputs = {"input_ids": move(ids, device), "attention_mask": move(mask, device)}
        vectors: Tensor = self.encoder(inputs)["sentence_embedding"]
        return vectors

    def rows(self, ids: Tensor, mask: Tensor, context: Context) -> Tensor:
        """Return the sentence vectors (n, width) of tokens (n, L) on the CPU; zero for rows without any."""
        there = mask.any(dim=1)
        if not there.any():
            # Every parameter gets a gradient, or the other processes would wait for it.
            return self.zero().expand(len(ids), self.width)
        with context.precision():
            vectors = self(ids[there], mask[there], context.device)
        if vectors.dtype != torch.float64:
            vectors = vectors.float()
        rows = vectors.new_zeros(len(ids), vectors.shape[1])
        return rows.index_copy(0, true_cells(there, context.device), vectors)
