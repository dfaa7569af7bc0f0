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
        return SecondEncoder(build.encoder)

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; one more pass, with a gradient, over the rows of this process."""
        second: SecondEncoder = context.modules[self.name]
        ids, mask = context.tokens[self.anchor]
        there = mask.any(dim=1)
        first_vectors = context.processes.own_rows(embeddings[self.anchor])
        first_vectors = first_vectors[true_cells(there, first_vectors.device)]
        if len(first_vectors) == 0:
            # Every parameter gets a gradient and every process sends its sum, or the others would wait.
            nothing = embeddings[self.anchor].sum() * 0 + second.zero()
            return LossOutput(context.processes.mean(nothing, nothing.new_zeros(())))
        with context.precision():
            second_vectors = second(ids[there], mask[there], first_vectors.device)

        partner, same = paired_sentences(len(first_vectors), self.negatives)
        partner = move(partner, first_vectors.device)
        labels = move(same, first_vectors.device).to(first_vectors.dtype)
        products = (first_vectors * second_vectors.to(first_vectors.dtype)[partner]).sum(dim=1)
        losses = F.binary_cross_entropy_with_logits(products, labels, reduction="none")
        count = losses.new_tensor(float(len(losses)))
        right = ((products > 0) == labels.bool()).to(products.dtype).mean()
        value = context.processes.mean(losses.sum(), count)
        return LossOutput(value, {"accuracy": right.detach()})


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
    partner = torch.arange(count, device="cpu")  # whatever the default device is
    same = partner % (negatives + 1) == 0
    different = partner[~same]
    if len(different) == 1:  # nothing to exchange it with: it meets the first sentence
        partner[different] = 0
    else:
        partner[~same] = different.roll(-1)
    return partner, same


class SecondEncoder(LossModule):
    """A trainable copy of the encoder.

    Args:
        encoder: A sequence of modules from features to features.
    """

    def __init__(self, encoder: nn.Module) -> None:
        super().__init__()
        parts: Any = encoder
        self.encoder = nn.Sequential(*(copy.deepcopy(part) for part in parts))

    def forward(self, ids: Tensor, mask: Tensor, device: torch.device) -> Tensor:
        """Return the sentence vectors (n, width) of tokens (n, L) on the CPU."""
        inputs = {"input_ids": move(ids, device), "attention_mask": move(mask, device)}
        vectors: Tensor = self.encoder(inputs)["sentence_embedding"]
        return vectors

    def zero(self) -> Tensor:
        """Return a zero that every parameter has a gradient of."""
        return torch.stack([weight.sum() for weight in self.parameters()]).sum() * 0
