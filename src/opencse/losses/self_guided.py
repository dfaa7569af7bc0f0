"""SG-OPT: the sentence vector is pulled towards the layers of a frozen copy of the same encoder."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from opencse.foundation.numbers import check_least, check_range
from opencse.foundation.tensors import move, true_cells
from opencse.losses.base import (
    Context,
    Embeddings,
    Frozen,
    Loss,
    LossBuildContext,
    LossModule,
    LossOutput,
    global_mean,
    mean_reports,
    own_positions,
)


@dataclass(frozen=True, kw_only=True)
class SelfGuidedLoss(Loss):
    r"""Contrast of a sentence vector c with the averaged layers h of a frozen copy of the encoder.

    .. math:: L = -\frac{1}{N (\ell + 1)} \sum_{i, k} \log
        \frac{e^{s(c_i, h_{ik})/t}}{e^{s(c_i, h_{ik})/t} + \sum_{j \ne i} \sum_l e^{s(c_i, h_{jl})/t}}

    s is the cosine after a projection head that both sides share. Every layer, the embeddings among
    them, is a positive of its sentence; the layers of other sentences are the negatives. Source:
    Kim et al., Self-Guided Contrastive Learning for BERT Sentence Representations (ACL 2021),
    eq. 5 (SG-OPT) and its code, in which the loss is used with L2 regularisation towards the
    initial weights: add a loss of the kind `recall`.

    Attributes:
        anchor: View of the sentences.
        temperature: t, in units of cosine similarity.
        hidden: Width of the two layers of the projection head.

    Example:
        >>> loss = SelfGuidedLoss(temperature=0.01)
        >>> loss.views, loss.tokens
        (('anchor',), ('anchor',))
    """

    kind: ClassVar[str] = "self_guided"
    view_fields: ClassVar[tuple[str, ...]] = ("anchor",)
    compares_embeddings: ClassVar[bool] = False

    anchor: str = "anchor"
    temperature: float = 0.01
    hidden: int = 4096

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(self, "(0, inf)", "temperature")
        check_least(self, 1, "hidden")

    @property
    def tokens(self) -> tuple[str, ...]:
        """The sentences, which the frozen copy reads."""
        return (self.anchor,)

    def module(self, build: LossBuildContext) -> LossModule:
        """Return the frozen copy and the projection head."""
        if build.transformer is None:
            raise ValueError("the encoder has no transformer whose layers could guide it")
        config: Any = build.transformer.config
        if config.hidden_size != build.width:
            raise ValueError(
                f"sentence vectors have {build.width} numbers, the layers {config.hidden_size}"
            )
        return _LayerGuide(build.transformer, build.width, self.hidden)

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; one more pass without a gradient, and O(n N L d) for the n own sentences.

        Each process projects its own layers, and compares its own sentences with the layers of all.
        """
        guide: _LayerGuide = context.modules[self.name]
        vectors = embeddings[self.anchor]
        ids, mask = context.tokens[self.anchor]
        layers = guide.layers(ids, mask, context).to(vectors.dtype)
        host_rows = context.host_rows(present, self.anchor)
        if len(host_rows) < 2:
            return LossOutput(vectors.sum() * 0 + guide.zero())

        rows = move(host_rows, context.device)
        own = move(own_positions(host_rows, len(vectors), context), context.device)
        processes = context.processes
        own_positives = F.normalize(guide.head(layers), dim=-1)
        positives = processes.all_rows(processes.gather_trained(own_positives))[rows]
        own_vectors = processes.all_rows(vectors)[rows[own]]
        projected = F.normalize(guide.head(own_vectors), dim=-1)
        losses, found = self_guided(projected, positives, self.temperature, own)
        value = global_mean(losses.sum(), len(losses), context)
        return LossOutput(value, mean_reports({"accuracy": (found.sum(), len(losses))}, context))


def self_guided(
    vectors: Tensor, layers: Tensor, temperature: float, places: Tensor
) -> tuple[Tensor, Tensor]:
    """Return the loss of each sentence, and the share of its layers nearer than all of the others', (n,).

    Args:
        vectors: Projected sentence vectors of length 1, (n, d).
        layers: Projected layers of length 1, (N, L, d).
        temperature: t.
        places: Number of each of the n sentences among the N, (n,).
    """
    cosines = torch.einsum("id,jld->ijl", vectors, layers) / temperature
    numbers = torch.arange(len(vectors), device=vectors.device)
    own = places[:, None] == torch.arange(len(layers), device=vectors.device)
    positive = cosines[numbers, places]  # (n, L)
    others = cosines.masked_fill(own[:, :, None], -math.inf).flatten(1)
    # The negatives are the same for every layer of a sentence.
    negatives = others.logsumexp(dim=1, keepdim=True)
    losses = torch.logaddexp(positive, negatives) - positive
    nearest = others.max(dim=1, keepdim=True).values
    return losses.mean(dim=1), (positive > nearest).to(vectors.dtype).mean(dim=1).detach()


class _LayerGuide(LossModule):
    """The frozen copy of the transformer, and the projection head.

    Args:
        transformer: A transformers encoder, which is copied with its weights.
        width: Size of its hidden states.
        hidden: Width of both layers of the head.
    """

    def __init__(self, transformer: nn.Module, width: int, hidden: int) -> None:
        super().__init__()
        self._frozen = Frozen(copy.deepcopy(transformer).eval())
        layers = (nn.Linear(width, hidden), nn.Linear(hidden, hidden))
        self.head = nn.Sequential(layers[0], nn.GELU(), layers[1], nn.GELU())
        deviation = float(getattr(transformer.config, "initializer_range", 0.02))
        for layer in layers:
            nn.init.normal_(layer.weight, std=deviation)
            nn.init.zeros_(layer.bias)

    @torch.no_grad()
    def layers(self, ids: Tensor, mask: Tensor, context: Context) -> Tensor:
        """Return the averages over tokens of all hidden states, (n, layers + 1, width).

        Args:
            ids: Token ids (n, L), on the CPU.
            mask: Attention mask (n, L), on the CPU; rows of zeros give zeros.
            context: Device and precision.
        """
        there = mask.any(dim=1)
        config: Any = self._frozen.module.config
        shape = (len(ids), config.num_hidden_layers + 1, config.hidden_size)
        averages = torch.zeros(shape, device=context.device)
        if not there.any():
            return averages
        attended = move(mask[there], context.device)
        with context.precision():
            output = self._frozen.module(
                input_ids=move(ids[there], context.device),
                attention_mask=attended,
                output_hidden_states=True,
            )
        weights = attended[:, None, :, None].to(averages.dtype)
        states = torch.stack(output.hidden_states, dim=1).to(averages.dtype)
        means = (states * weights).sum(dim=2) / weights.sum(dim=2)
        averages[true_cells(there, context.device)] = means
        return averages
