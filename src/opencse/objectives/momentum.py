"""A momentum encoder and a queue of its vectors, as further negatives (MoCo, He et al., CVPR 2020; ESimCSE)."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from opencse.objectives.contrastive import Contrastive
from opencse.objectives.term import Context, Embeddings, TermBuildContext


@dataclass(frozen=True, kw_only=True)
class MomentumContrastive(Contrastive):
    r"""The contrastive loss with a queue of negatives from the batches before.

    .. math:: L_i = -\log \frac{e^{c(a_i, p_i)/t}}{\sum_j e^{c(a_i, p_j)/t} + \sum_m e^{c(a_i, q_m)/t}}

    The q are vectors of sentences of earlier batches, made without dropout by a slow copy of the encoder,
    :math:`\theta_m \leftarrow \lambda \theta_m + (1 - \lambda) \theta`, through which no gradient flows; the oldest
    leave the queue first. Source: ESimCSE (Wu et al., COLING 2022) §3.2 and eq. 5.

    Attributes:
        queue_size: Vectors in the queue; ESimCSE's best is 2.5 batches.
        momentum: λ.
        queued: View that enters the queue; the anchor where empty, as in ESimCSE's code.
    """

    kind: ClassVar[str] = "momentum_contrastive"

    queue_size: int = 160
    momentum: float = 0.995
    queued: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.queue_size < 1:
            raise ValueError("queue_size must be at least 1")
        if not 0 <= self.momentum <= 1:
            raise ValueError("momentum must lie between 0 and 1")
        if self.margin is not None:
            raise ValueError("a margin is not defined for the queue")

    @property
    def views(self) -> tuple[str, ...]:
        """Those of the contrastive loss, and what enters the queue."""
        return tuple(dict.fromkeys((*super().views, *self.tokens)))

    @property
    def tokens(self) -> tuple[str, ...]:
        """The view that the momentum encoder reads."""
        return (self.queued or self.anchor,)

    def module(self, build: TermBuildContext) -> nn.Module:
        """Momentum encoder and queue."""
        return MomentumQueue(build.encoder, build.projector, build.width, self.queue_size, self.momentum)

    def __call__(self, embeddings: Embeddings, present: Embeddings, context: Context) -> Tensor:
        """See the class; one more pass over one view, without a way back."""
        module = self._module(context)
        module.follow(context.step)
        (view,) = self.tokens
        loss = super().__call__(embeddings, present, context)
        module.enqueue(self._encoded(module, present[view], view, context))
        context.report(f"{self.name}/queue", module.vectors.new_tensor(float(len(module.vectors))))
        return loss

    def _noise(self, anchors: Tensor, here: Tensor, context: Context) -> list[Tensor]:
        queue = self._module(context).vectors.clone()  # it changes before the gradient is computed
        return [*super()._noise(anchors, here, context), F.normalize(queue, dim=-1).to(anchors.dtype)]

    def _module(self, context: Context) -> MomentumQueue:
        module = context.modules[self.name]
        assert isinstance(module, MomentumQueue)
        return module

    @torch.no_grad()
    def _encoded(self, module: MomentumQueue, present: Tensor, view: str, context: Context) -> Tensor:
        """Return the momentum encoder's vectors of the present rows of the global batch."""
        ids, mask = context.tokens[view]
        here = mask.any(dim=1)
        with context.precision():
            found = module.encode(ids[here], mask[here])
        rows = found.new_zeros(len(ids), found.shape[1], dtype=module.dtype)
        rows[here] = found.to(rows.dtype)
        return module.project(context.processes.gather(rows)[present])


class MomentumQueue(nn.Module):
    """The slow copy of the encoder, and what it made of the last batches.

    Args:
        encoder: A sequence of modules from features to features.
        projector: From sentence vectors to embeddings; used as it is now, as in ESimCSE's code, not slowed.
        width: Of the embeddings.
        size: Vectors to keep.
        momentum: λ.
    """

    def __init__(self, encoder: nn.Module, projector: nn.Module, width: int, size: int, momentum: float) -> None:
        super().__init__()
        self._online = (encoder, projector)  # in a tuple: they belong to the network
        parts: Any = encoder
        self.encoder = nn.ModuleList(copy.deepcopy(part) for part in parts)
        self.requires_grad_(False).eval()
        self._momentum = momentum
        self.register_buffer("queue", torch.zeros(size, width))
        self.register_buffer("count", torch.zeros((), dtype=torch.long))
        self.register_buffer("followed", torch.zeros((), dtype=torch.long))

    def train(self, mode: bool = True) -> MomentumQueue:
        """It never trains: dropout stays off."""
        return super().train(False)

    @property
    def dtype(self) -> torch.dtype:
        """Of the queue."""
        return self.vectors.dtype

    @property
    def vectors(self) -> Tensor:
        """The queue's embeddings, oldest first, of shape (n, width)."""
        assert isinstance(self.queue, Tensor)
        assert isinstance(self.count, Tensor)
        return self.queue[: int(self.count)]

    @torch.no_grad()
    def follow(self, step: int) -> None:
        """Move towards the trained weights, once for each optimiser step that was made."""
        assert isinstance(self.followed, Tensor)
        if step == int(self.followed):
            return
        self.followed.fill_(step)
        parts: Any = self._online[0]
        for slow, now in zip(self.encoder, parts, strict=True):
            for weight, new in zip(slow.parameters(), now.parameters(), strict=True):
                weight.lerp_(new, 1 - self._momentum)
            for statistic, new_statistic in zip(slow.buffers(), now.buffers(), strict=True):
                statistic.copy_(new_statistic)

    def project(self, vectors: Tensor) -> Tensor:
        """Return embeddings (n, width) of the encoder's vectors."""
        return self._online[1](vectors)

    def encode(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Sentence vectors (n, width of the encoder) of ids and attention mask (n, L)."""
        features: Any = {"input_ids": ids, "attention_mask": mask}
        for part in self.encoder:
            features = part(features)
        return features["sentence_embedding"]

    @torch.no_grad()
    def enqueue(self, vectors: Tensor) -> None:
        """Put vectors (n, width) in; the oldest leave."""
        assert isinstance(self.queue, Tensor)
        assert isinstance(self.count, Tensor)
        kept = torch.cat([self.vectors, vectors.to(self.dtype)])[-len(self.queue) :]
        self.queue[: len(kept)] = kept
        self.count.fill_(len(kept))
