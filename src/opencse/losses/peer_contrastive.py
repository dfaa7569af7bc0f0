"""PCL: many edited versions of a sentence as positives, learned by two peer networks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from opencse.foundation.numbers import check_range
from opencse.foundation.tensors import move
from opencse.losses.base import (
    Context,
    Embeddings,
    Loss,
    LossBuildContext,
    LossModule,
    LossOutput,
    own_positions,
)
from opencse.losses.contrastive_tension import SecondEncoder


@dataclass(frozen=True, kw_only=True)
class PeerContrastiveLoss(Loss):
    r"""Peer-contrastive learning with diverse augmentations.

    .. math:: L = \sum_{f \in \{1, 2\}} \left( L^f_{\text{InfoNCE}} + L^f_{\text{group}} \right)
        + L_{\text{within}} + L_{\text{across}}

    Each of two networks f contrasts a sentence with its first positive (InfoNCE), and with the
    group of all its positives against the other sentences (`group`, a binary cross-entropy on the
    softmax of the cosines). The Kullback-Leibler divergences pull the distribution over positives
    and other sentences that one network sees towards that of its peer: `within` compares each
    network with itself, `across` the sentences of one network with the texts of the other. Source:
    Wu et al., PCL (EMNLP 2022) and its code, whose averages run over all cells of a matrix.

    The second network starts from the same weights, is trained with the first, and is not exported.

    Attributes:
        anchor: View of the sentences.
        positives: Views of the positives; the first is that of InfoNCE, usually the sentence again.
        temperature: t, in units of cosine similarity.
        peer: What the peer gives to the projector: `encoder`, the sentence vector of a copy of the
            encoder; or `pooler`, the output of the backbone's own pooler, where padding is attended
            to (PCL's code).

    Example:
        >>> loss = PeerContrastiveLoss(positives=("twin", "shuffled", "reversed"))
        >>> loss.views
        ('anchor', 'twin', 'shuffled', 'reversed')
    """

    kind: ClassVar[str] = "peer_contrastive"
    view_fields: ClassVar[tuple[str, ...]] = ("anchor", "positives")
    # Not at shorter lengths (`dimensions`): the vectors of the peer are complete ones.
    compares_embeddings: ClassVar[bool] = False

    anchor: str = "anchor"
    positives: tuple[str, ...] = ("twin",)
    temperature: float = 0.05
    peer: Literal["encoder", "pooler"] = "encoder"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range(self, "(0, inf)", "temperature")
        if not self.positives:
            raise ValueError("positives must name at least one view")

    @property
    def tokens(self) -> tuple[str, ...]:
        """All views: the peer reads them too."""
        return self.views

    def module(self, build: LossBuildContext) -> LossModule:
        """Return the peer network."""
        if self.peer == "encoder":
            return _PeerNetwork(build.encoder, build.projector)
        assert build.with_pooler is not None
        pad_id = build.tokenizer.pad_token_id or 0
        return _PooledPeer(build.with_pooler("backbone"), build.projector, build.width, pad_id)

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; one more pass, with a gradient, over every view."""
        peer: _PeerNetwork | _PooledPeer = context.modules[self.name]
        if isinstance(peer, _PooledPeer):
            peer.longest = max(context.tokens[view][0].shape[1] for view in self.views)
        peers = {view: self._seen_by(peer, view, context) for view in self.views}
        host_rows = context.host_rows(present, *self.views)
        if len(host_rows) < 2:
            nothing = torch.stack([vectors.sum() for vectors in peers.values()]).sum()
            return LossOutput(self.zero(embeddings).value + nothing * 0)

        rows = move(host_rows, context.device)
        size = len(present[self.views[0]])
        anchors = move(own_positions(host_rows, size, context), context.device)
        all_rows = context.processes.all_rows
        own = torch.stack([embeddings[view] for view in self.views])
        own = F.normalize(all_rows(own)[:, rows], dim=-1)
        other = torch.stack([peers[view] for view in self.views])
        other = F.normalize(all_rows(other)[:, rows], dim=-1)
        parts = peer_losses(own, other.to(own.dtype), self.temperature, anchors)
        totals = torch.stack([values.sum() for values in parts.values()])
        counts = torch.full_like(totals, float(len(anchors)))
        means = context.processes.mean(totals, counts)
        reports = dict(zip(parts, means.detach().unbind(), strict=True))
        return LossOutput(means.sum(), reports)

    def _seen_by(self, peer: _PeerNetwork | _PooledPeer, view: str, context: Context) -> Tensor:
        """Return the peer's embeddings of a view, over the global batch; zero if a row lacks it."""
        ids, mask = context.tokens[view]
        return context.processes.gather_trained(peer.rows(ids, mask, context))


def peer_losses(
    own: Tensor, peer: Tensor, temperature: float, anchors: Tensor
) -> dict[str, Tensor]:
    """Return the six summands of the loss by name, for each of some anchors, (n,).

    Args:
        own: Unit vectors of the trained network, (views, N, d), the anchors first.
        peer: Those of its peer.
        temperature: t.
        anchors: Numbers of the anchors, (n,).
    """
    own_logits = _group_logits(own[0], own[1:], own[0], temperature, anchors)
    peer_logits = _group_logits(peer[0], peer[1:], peer[0], temperature, anchors)
    # Anchors of one network against the texts of the other.
    own_to_peer = _group_logits(own[0], peer[1:], peer[0], temperature, anchors)
    peer_to_own = _group_logits(peer[0], own[1:], own[0], temperature, anchors)
    return {
        "info_nce": _info_nce(own[0], own[1], temperature, anchors),
        "group": _group_loss(own_logits, len(own) - 1),
        "peer_info_nce": _info_nce(peer[0], peer[1], temperature, anchors),
        "peer_group": _group_loss(peer_logits, len(own) - 1),
        "within": _divergence(own_logits, peer_logits),
        "across": _divergence(own_to_peer, peer_to_own),
    }


def _group_logits(
    vectors: Tensor, positives: Tensor, others: Tensor, temperature: float, anchors: Tensor
) -> Tensor:
    """Return cosines over t with the own positives and then the other sentences, (n, P + N − 1).

    Args:
        vectors: Those of the anchors, (N, d).
        positives: (P, N, d).
        others: (N, d); row j is a negative of every anchor but j.
        temperature: t.
        anchors: Numbers of the n anchors, (n,).
    """
    chosen = vectors[anchors]
    to_positives = torch.einsum("nd,pnd->np", chosen, positives[:, anchors])
    to_others = chosen @ others.T
    # The columns of each anchor without its own one.
    columns = torch.arange(len(others) - 1, device=anchors.device)
    columns = columns + (columns >= anchors[:, None])
    return torch.cat([to_positives, to_others.gather(1, columns)], dim=1) / temperature


def _info_nce(vectors: Tensor, positives: Tensor, temperature: float, anchors: Tensor) -> Tensor:
    logits = vectors[anchors] @ positives.T / temperature
    return F.cross_entropy(logits, anchors, reduction="none")


def _group_loss(logits: Tensor, positives: int) -> Tensor:
    """Return the binary cross-entropy whose logits are, as in the code, the softmax of the cosines."""
    labels = torch.zeros_like(logits)
    labels[:, :positives] = 1.0
    losses = F.binary_cross_entropy_with_logits(logits.softmax(dim=1), labels, reduction="none")
    return losses.mean(dim=1)


def _divergence(logits: Tensor, target: Tensor) -> Tensor:
    """Return KL(target ‖ logits), averaged over the cells of each row; both sides have a gradient."""
    divergence = F.kl_div(
        logits.log_softmax(dim=1), target.log_softmax(dim=1), reduction="none", log_target=True
    )
    return divergence.mean(dim=1)


class _PeerNetwork(SecondEncoder):
    """The peer: a trainable copy of the encoder, followed by the projector of the first network.

    Args:
        encoder: A sequence of modules from features to features.
        projector: The projector, which both networks share.
    """

    def __init__(self, encoder: nn.Module, projector: nn.Module) -> None:
        super().__init__(encoder, int(encoder.get_embedding_dimension()))  # type: ignore[operator]
        # In a tuple, which PyTorch does not search: the projector belongs to the network.
        self._projector = (projector,)

    def forward(self, ids: Tensor, mask: Tensor, device: torch.device) -> Tensor:
        """Return the projected vectors (n, width) of tokens (n, L) on the CPU."""
        vectors: Tensor = self._projector[0](super().forward(ids, mask, device))
        return vectors


class _PooledPeer(SecondEncoder):
    """The peer of PCL's code: the backbone with its own pooler, and no attention mask.

    Source: qiyuw/PeerCL, pcl/models.py:107 and 244-249. Views are padded to the longest sequence of
    all views of the batch, and padding is attended to.

    Args:
        transformer: Model from `input_ids` and `attention_mask` to `pooler_output`.
        projector: The projector, which both networks share.
        width: Size of the vectors.
        pad_id: Id of the padding token.
    """

    def __init__(
        self, transformer: nn.Module, projector: nn.Module, width: int, pad_id: int
    ) -> None:
        super().__init__(nn.Sequential(transformer), width)
        # In a tuple, which PyTorch does not search: the projector belongs to the network.
        self._projector = (projector,)
        self._pad_id = pad_id
        self.longest = 0
        """Length to which the views of the batch are padded."""

    def forward(self, ids: Tensor, mask: Tensor, device: torch.device) -> Tensor:
        """Return the projected vectors (n, width) of tokens (n, L) on the CPU."""
        missing = self.longest - ids.shape[1]
        padded = move(F.pad(ids, (0, missing), value=self._pad_id), device)
        output = self.encoder[0](input_ids=padded, attention_mask=torch.ones_like(padded))
        vectors: Tensor = self._projector[0](output.pooler_output)
        return vectors
