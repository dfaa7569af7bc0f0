"""A momentum encoder and a queue of its vectors as additional negatives (MoCo, He et al., CVPR 2020; ESimCSE)."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from opencse.foundation.numbers import check_least, check_range
from opencse.foundation.tensors import move, true_cells
from opencse.losses.info_nce import InfoNCELoss
from opencse.losses.term import Context, Embeddings, LossOutput, TermBuildContext, TermModule


@dataclass(frozen=True, kw_only=True)
class MomentumContrastiveLoss(InfoNCELoss):
    r"""InfoNCE loss with a queue of negatives from previous batches.

    .. math:: L_i = -\log \frac{e^{c(a_i, p_i)/t}}{\sum_j e^{c(a_i, p_j)/t} + \sum_m e^{c(a_i, q_m)/t}}

    The q are vectors of previous batches, computed without dropout and without gradient by a momentum copy of the
    encoder, :math:`\theta_m \leftarrow \lambda \theta_m + (1 - \lambda) \theta`; the oldest leave the queue first.
    Source: ESimCSE (Wu et al., COLING 2022) §3.2 and eq. 5.

    Attributes:
        queue_size: Number of vectors in the queue; ESimCSE's best size is 2.5 batches.
        momentum: λ.

    Example:
        >>> encoder = nn.Sequential(nn.Linear(2, 2))
        >>> queue = MomentumQueue(encoder, nn.Identity(), width=2, size=4, momentum=0.9)
        >>> queue.enqueue(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
        >>> queue.enqueue(torch.tensor([[3.0, 0.0], [0.0, 3.0], [5.0, 5.0]]))
        >>> queue.vectors.tolist()  # the oldest has left
        [[0.0, 1.0], [3.0, 0.0], [0.0, 3.0], [5.0, 5.0]]
    """

    kind: ClassVar[str] = "momentum_contrastive"
    compares_embeddings: ClassVar[bool] = False  # the queue has whole vectors only

    queue_size: int = 160
    momentum: float = 0.995

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, 1, "queue_size")
        check_range(self, "[0, 1]", "momentum")

    @property
    def tokens(self) -> tuple[str, ...]:
        """The anchors, whose momentum vectors enter the queue, as in ESimCSE's code."""
        return (self.anchor,)

    def module(self, build: TermBuildContext) -> TermModule:
        """Return the momentum encoder with its queue."""
        return MomentumQueue(build.encoder, build.projector, build.width, self.queue_size, self.momentum)

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; one more forward pass over one view."""
        module: MomentumQueue = context.modules[self.name]
        module.follow(context.step)
        loss = super().compute(embeddings, present, context)
        module.enqueue(self._encoded(module, context)[context.rows(present, self.anchor)])
        queued = module.vectors.new_full((), float(len(module.vectors)))
        return LossOutput(loss.value, {**loss.reports, "queue": queued})

    def shared_negatives(self, anchors: Tensor, context: Context) -> list[Tensor]:
        """Return the queue as it was before this batch."""
        return [F.normalize(context.modules[self.name].vectors, dim=-1).to(anchors.dtype)]

    @torch.no_grad()
    def _encoded(self, module: MomentumQueue, context: Context) -> Tensor:
        """Return the sentence vectors of the momentum encoder for the global batch, zero if a row lacks an anchor."""
        ids, mask = context.tokens[self.anchor]
        nonempty = mask.any(dim=1)
        with context.precision():
            inputs = {"input_ids": ids, "attention_mask": mask}
            features = module.encoder({name: move(x[nonempty], context.device) for name, x in inputs.items()})
        vectors = features["sentence_embedding"]
        rows = vectors.new_zeros(len(ids), vectors.shape[1], dtype=module.vectors.dtype)
        rows[true_cells(nonempty, context.device)] = vectors.to(rows.dtype)
        return context.processes.gather(rows)


class MomentumQueue(TermModule):
    """The momentum copy of the encoder, and the queue of its vectors.

    Args:
        encoder: A sequence of modules from features to features.
        projector: Projector with its current weights, without momentum, as in ESimCSE's code.
        width: Size of the embeddings.
        size: Number of vectors in the queue.
        momentum: λ.
    """

    def __init__(self, encoder: nn.Module, projector: nn.Module, width: int, size: int, momentum: float) -> None:
        super().__init__()
        self._online = (encoder, projector)  # in a tuple: they belong to the network
        parts: Any = encoder
        self.encoder = nn.Sequential(*map(copy.deepcopy, parts))
        self.requires_grad_(False).eval()
        self._momentum = momentum
        self.register_buffer("queue", torch.zeros(size, width))
        self._count, self._followed = 0, 0  # kept on the host, and saved with the weights

    def get_extra_state(self) -> Tensor:
        """Return the number of vectors in the queue and the last step that was followed."""
        return torch.tensor([self._count, self._followed])

    def set_extra_state(self, state: Tensor) -> None:
        """Set what `get_extra_state` returned."""
        self._count, self._followed = state.tolist()

    def train(self, mode: bool = True) -> MomentumQueue:
        """Stay in evaluation mode, so that dropout is off."""
        return super().train(False)

    @property
    def vectors(self) -> Tensor:
        """Embeddings in the queue, oldest first, (n, width)."""
        return self.get_buffer("queue")[: self._count]

    @torch.no_grad()
    def follow(self, step: int) -> None:
        """Move towards the trained weights, once for each optimiser step."""
        if step == self._followed:
            return
        self._followed = step
        current = self._online[0]
        for weight, new in zip(self.encoder.parameters(), current.parameters(), strict=True):
            weight.lerp_(new, 1 - self._momentum)
        for statistic, new_statistic in zip(self.encoder.buffers(), current.buffers(), strict=True):
            statistic.copy_(new_statistic)

    @torch.no_grad()
    def enqueue(self, vectors: Tensor) -> None:
        """Add the embeddings of sentence vectors (n, width of the encoder) to the queue; the oldest leave."""
        buffer = self.get_buffer("queue")
        newest = torch.cat([self.vectors, self._online[1](vectors).to(buffer.dtype)])[-len(buffer) :]
        buffer[: len(newest)] = newest
        self._count = len(newest)
