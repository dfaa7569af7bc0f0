"""InfoNCE with other negatives: filtered or noise (DCLR), or a momentum queue (MoCo, ESimCSE)."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from opencse.foundation.numbers import check_least, check_range
from opencse.foundation.tensors import move, tensors_hash, true_cells
from opencse.losses.base import (
    Context,
    Embeddings,
    Frozen,
    LossBuildContext,
    LossModule,
    LossOutput,
    global_mean,
)
from opencse.losses.info_nce import InfoNCELoss, OwnAnchors, own_anchors


@dataclass(frozen=True, kw_only=True)
class FalseNegatives:
    """In-batch negatives that another model finds too similar and that are left out (DCLR eq. 5).

    Attributes:
        teacher: Name of the complementary model.
        threshold: φ; in-batch candidates with at least this cosine to the anchor count as false
            negatives.
        center: Subtract the mean vector of the anchors of the batch first. Otherwise a model that
            was never trained for similarity finds nearly all sentences similar.
    """

    teacher: str
    threshold: float = 0.9
    center: bool = False

    def __post_init__(self) -> None:
        check_range(self, "(-1, 1]", "threshold")


@dataclass(frozen=True, kw_only=True)
class NoiseNegatives:
    """Noise vectors as negatives, moved towards the anchors by gradient ascent (DCLR eq. 6-8).

    The vectors start as normal noise of length 1. Each step of gradient ascent on Σ_i log Σ_k
    exp(c(a_i, v_k)/t) moves each by `step_size` in the direction of its gradient. They depend only
    on the training step and the anchors, so that all processes have the same vectors.

    Attributes:
        times: Number of vectors, as a multiple of the batch size.
        steps: Number of gradient ascent steps.
        step_size: Length of a step relative to the length of the vector.
        temperature: t in that objective.
    """

    times: float = 1.0
    steps: int = 4
    step_size: float = 0.1
    temperature: float = 0.05

    def __post_init__(self) -> None:
        check_range(self, "(0, inf)", "times", "temperature")
        check_least(self, 0, "steps", "step_size")

    def draw(
        self,
        anchors: Tensor,
        step: int,
        count: int | None = None,
        total: Callable[[Tensor], Tensor] = lambda part: part,
    ) -> Tensor:
        """Return unit vectors (K, d) without a gradient.

        Args:
            anchors: Unit vectors of the anchors of this process, (n, d).
            step: The training step, which is the seed of the noise.
            count: Number of anchors of all processes; by default n.
            total: Function from a tensor of this process to its sum over all processes.
        """
        if count is None:
            count = len(anchors)
        normal = normal_noise(max(1, round(self.times * count)), anchors.shape[1], step)
        noise = move(F.normalize(normal, dim=-1).to(anchors.dtype), anchors.device)
        anchors = anchors.detach()
        for _ in range(self.steps):
            direction = F.normalize(total(self._gradient(anchors, noise)), dim=-1)
            noise = F.normalize(noise + self.step_size * direction, dim=-1)
        return noise

    def _gradient(self, anchors: Tensor, noise: Tensor) -> Tensor:
        """Return t times the gradient of some anchors with respect to the noise on the sphere, (K, d)."""
        cosines = anchors @ noise.T
        shares = torch.softmax(cosines / self.temperature, dim=1)
        pull = shares.T @ anchors
        return pull - (shares * cosines).sum(dim=0, keepdim=True).T * noise


def normal_noise(count: int, width: int, step: int) -> Tensor:
    """Return normal noise (count, width), float64, that depends only on the training step.

    It is drawn on the CPU, so that it is the same on every device.
    """
    generator = torch.Generator("cpu").manual_seed(step)
    return torch.randn(count, width, generator=generator, dtype=torch.float64, device="cpu")


@dataclass(frozen=True, kw_only=True)
class DCLRLoss(InfoNCELoss):
    r"""InfoNCE without the batch's false negatives, and with noise negatives v (DCLR eq. 9).

    Source: Zhou et al., ACL 2022.

    .. math:: L_i = -\log \frac{e^{c(a_i, p_i)/t}}{\sum_j w_{ij} e^{c(a_i, p_j)/t} + \sum_k e^{c(a_i, v_k)/t}}

    Attributes:
        false_negatives: Which in-batch candidates weigh 0 by another model's similarities; by
            default all weigh 1.
        noise: Random vectors v as additional negatives; by default none.
        form: `paper` for the equations; `code` for the authors' code (`_as_coded`).
        complementary: With `code`, the model of `false_negatives`: a folder, a hub id or `backbone`.
            It reads the tokens of each batch, with dropout, and gives the output of its pooler.

    Example:
        >>> vectors = torch.tensor([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0]])
        >>> teachers = {"a": {"anchor": vectors, "twin": vectors}}
        >>> loss = DCLRLoss(false_negatives=FalseNegatives(teacher="a", threshold=0.9))
        >>> output = loss(vectors, vectors, context=Context(teachers=teachers))
        >>> f"{output.value:.3f}, {output.reports['false_negatives']:.2f} of the pairs left out"
        '0.000, 0.33 of the pairs left out'
    """

    kind: ClassVar[str] = "dclr"

    false_negatives: FalseNegatives | None = None
    noise: NoiseNegatives | None = None
    form: Literal["paper", "code"] = "paper"
    complementary: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        coded = self.form == "code"
        if coded != bool(self.complementary):
            raise ValueError("complementary names the model of the form 'code', and of no other")
        if coded and (self.negatives or not self.false_negatives or not self.noise):
            raise ValueError("the form 'code' has false_negatives and noise, and no hard negatives")

    @property
    def tokens(self) -> tuple[str, ...]:
        """The views that the complementary model of the form `code` reads."""
        return (self.anchor, self.positive) if self.form == "code" else ()

    def module(self, build: LossBuildContext) -> LossModule | None:
        """Return the complementary model of the form `code`."""
        if self.form == "paper":
            return None
        assert build.with_pooler is not None
        pad_id = build.tokenizer.pad_token_id or 0
        return _ComplementaryModel(build.with_pooler(self.complementary), pad_id)

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; the form `code` has one more forward pass over both views."""
        if self.form == "paper":
            return super().compute(embeddings, present, context)
        return self._as_coded(embeddings, present, context)

    def _as_coded(
        self, embeddings: Embeddings, present: Embeddings, context: Context
    ) -> LossOutput:
        r"""Compute the loss of the authors' code (RUCAIBox/DCLR, simcse/models.py:676-710).

        The logits of false negatives are multiplied by 0, so that they still count. The loss is the
        binary cross-entropy of the softmax, averaged over all n × (n + k) cells. The noise is not
        normalised.
        """
        rows = context.rows(present, self.anchor, self.positive)
        if not len(rows):
            return self.zero(embeddings)
        assert self.false_negatives is not None
        assert self.noise is not None
        all_rows = context.processes.all_rows
        unit = {view: F.normalize(all_rows(embeddings[view]), dim=-1) for view in self.views}
        own = own_anchors(self, present, context)
        anchors = unit[self.anchor][own.positives]
        positives = unit[self.positive][rows]
        in_batch = anchors @ positives.T / self.temperature
        # Place of each own anchor's positive among the columns.
        places = torch.arange(own.before, own.before + len(anchors), device=context.device)
        start = normal_noise(int(self.noise.times * len(rows)), anchors.shape[1], context.step)
        noise = move(start.to(anchors.dtype), context.device)
        noise = self._moved(noise, anchors, in_batch, places, context)
        on_noise = anchors @ F.normalize(noise, dim=-1).T / self.temperature

        module: _ComplementaryModel = context.modules[self.name]
        first, second = module.unit_vectors(self.anchor, self.positive, context)
        similar = first[own.positives] @ second[rows].T
        columns = torch.arange(len(rows), device=context.device)
        itself = places[:, None] == columns
        false = (similar > self.false_negatives.threshold) & ~itself
        logits = torch.cat([in_batch.masked_fill(false, 0.0), on_noise], dim=1)
        shares = logits.softmax(dim=1)
        wanted = torch.zeros_like(shares)
        wanted[:, : len(rows)] = itself.to(shares.dtype)
        # The binary cross-entropy of each cell.
        right = wanted * shares.log()
        wrong = (1 - wanted) * (1 - shares).log()
        cells = -(right + wrong)
        loss = global_mean(cells.sum(), cells.numel(), context)

        cosines = unit[self.anchor].detach()[own.first : own.first + own.size]
        cosines = cosines @ unit[self.positive].detach().T
        reports = InfoNCELoss.reports(self, cosines, {}, present, own, context)
        others = false.numel() - len(false)
        total = false.sum().to(cells.dtype)
        reports["false_negatives"] = global_mean(total, others, context)
        return LossOutput(loss, reports)

    def _moved(
        self, noise: Tensor, anchors: Tensor, in_batch: Tensor, places: Tensor, context: Context
    ) -> Tensor:
        """Move the noise along the normalised gradient of the cross-entropy over batch and noise.

        Args:
            noise: Its start, (k, d), the same in every process.
            anchors: Unit vectors of the anchors of this process, (n, d).
            in_batch: Their logits of the batch, (n, N).
            places: The columns of their positives, (n,).
            context: As given to the loss.
        """
        assert self.noise is not None
        anchors = anchors.detach()
        in_batch = in_batch.detach()
        for _ in range(self.noise.steps):
            with torch.enable_grad():
                noise = noise.detach().requires_grad_()
                on_noise = anchors @ F.normalize(noise, dim=-1).T / self.temperature
                logits = torch.cat([in_batch, on_noise], dim=1)
                loss = F.cross_entropy(logits, places, reduction="sum") / in_batch.shape[1]
                (gradient,) = torch.autograd.grad(loss, noise)
            gradient = context.processes.total(gradient)
            step = gradient / gradient.norm(dim=-1, keepdim=True) * self.noise.step_size
            noise = (noise + step).nan_to_num(nan=0.0).detach()
        return noise

    @property
    def teachers(self) -> tuple[str, ...]:
        """The model that identifies false negatives by the form `paper`."""
        if self.false_negatives is None or self.form == "code":
            return ()
        return (self.false_negatives.teacher,)

    def adjusted(
        self, cosines: Tensor, first: int, present: Embeddings, context: Context
    ) -> tuple[Tensor, Tensor | float]:
        """See the base class; a false negative has the cosine -∞."""
        if self.false_negatives is None:
            return cosines, 0.0
        return cosines.masked_fill(self._mask(first, present, context), -math.inf), 0.0

    def shared_negatives(self, anchors: Tensor, count: int, context: Context) -> list[Tensor]:
        """Return the noise."""
        if self.noise is None:
            return []
        return [self.noise.draw(anchors, context.step, count, context.processes.total)]

    def reports(
        self,
        cosines: Tensor,
        hard: dict[str, Tensor],
        present: Embeddings,
        own: OwnAnchors,
        context: Context,
    ) -> dict[str, Tensor]:
        """See the base class; `false_negatives` is their share of the in-batch negatives."""
        reports = super().reports(cosines, hard, present, own, context)
        if self.false_negatives is not None:
            mask = self._mask(own.first, present, context)
            total = mask.sum().to(cosines.dtype)
            # All cells but the positives.
            reports["false_negatives"] = global_mean(total, mask.numel() - len(mask), context)
        return reports

    def _mask(self, first: int, present: Embeddings, context: Context) -> Tensor:
        """Return which in-batch candidates of the anchors of this process are false negatives, (b, B).

        Args:
            first: Number of the first of these anchors in the batch.
            present: The masks given to the loss.
            context: As given to the loss.
        """
        settings = self.false_negatives
        assert settings is not None
        vectors = context.teachers[settings.teacher]
        rows = context.rows(present, self.anchor)
        mean: Tensor | float = 0.0
        if settings.center:
            mean = vectors[self.anchor][rows].mean(dim=0)
        a = F.normalize(vectors[self.anchor] - mean, dim=-1)
        b = F.normalize(vectors[self.positive] - mean, dim=-1)
        own = context.processes.own_rows(a)
        false = own @ b.T >= settings.threshold
        # A positive is no false negative.
        false.diagonal(first).fill_(False)
        return false


class _ComplementaryModel(LossModule):
    """A frozen transformer whose pooler's output shows which sentences are similar, with dropout on.

    Args:
        transformer: Model from `input_ids` and `attention_mask` to `pooler_output`.
        pad_id: Id of the padding token.
    """

    def __init__(self, transformer: nn.Module, pad_id: int) -> None:
        super().__init__()
        self.complementary = Frozen(transformer.train())
        self.digest = tensors_hash(transformer.state_dict())
        self._pad_id = pad_id

    @torch.no_grad()
    def unit_vectors(self, anchor: str, positive: str, context: Context) -> tuple[Tensor, Tensor]:
        """Return the unit vectors of all anchors and positives, (B, width) each.

        Padding is attended to, as in DCLR's code.
        """
        # Both in one pass, padded to one length.
        anchor_ids, _ = context.tokens[anchor]
        positive_ids, _ = context.tokens[positive]
        width = max(anchor_ids.shape[1], positive_ids.shape[1])
        padded = []
        for part in (anchor_ids, positive_ids):
            missing = width - part.shape[1]
            padded.append(F.pad(part, (0, missing), value=self._pad_id))
        ids = move(torch.cat(padded), context.device)
        with context.precision():
            output = self.complementary.module(input_ids=ids, attention_mask=torch.ones_like(ids))
        vectors = F.normalize(output.pooler_output, dim=-1)
        first, second = vectors.chunk(2)
        return context.processes.gather(first), context.processes.gather(second)


@dataclass(frozen=True, kw_only=True)
class MomentumContrastiveLoss(InfoNCELoss):
    r"""InfoNCE loss with a queue of negatives from previous batches.

    .. math:: L_i = -\log \frac{e^{c(a_i, p_i)/t}}{\sum_j e^{c(a_i, p_j)/t} + \sum_m e^{c(a_i, q_m)/t}}

    The q are vectors of previous batches, computed without dropout and without gradient by a
    momentum copy of the encoder, :math:`\theta_m \leftarrow \lambda \theta_m + (1 - \lambda)
    \theta`; the oldest leave the queue first. Source: ESimCSE (Wu et al., COLING 2022) §3.2 and
    eq. 5.

    Attributes:
        queue_size: Number of vectors in the queue; ESimCSE's best size is 2.5 batches.
        momentum: λ.
        start: Weights that the copy starts from: those of the `encoder`, or `random` ones, which
            move towards the encoder before the first step too (ESimCSE's code).

    Example:
        >>> encoder = nn.Sequential(nn.Linear(2, 2))
        >>> queue = MomentumQueue(encoder, nn.Identity(), width=2, size=4, momentum=0.9)
        >>> queue.enqueue(torch.tensor([[1.0, 0.0], [0.0, 1.0]]))
        >>> queue.enqueue(torch.tensor([[3.0, 0.0], [0.0, 3.0], [5.0, 5.0]]))
        >>> queue.vectors.tolist()  # the oldest has left
        [[0.0, 1.0], [3.0, 0.0], [0.0, 3.0], [5.0, 5.0]]
    """

    kind: ClassVar[str] = "momentum_contrastive"
    # The queue has complete vectors only, so truncated ones cannot be compared with it.
    compares_embeddings: ClassVar[bool] = False

    queue_size: int = 160
    momentum: float = 0.995
    start: Literal["encoder", "random"] = "encoder"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_least(self, 1, "queue_size")
        check_range(self, "[0, 1]", "momentum")

    @property
    def tokens(self) -> tuple[str, ...]:
        """The anchors, whose momentum vectors enter the queue, as in ESimCSE's code."""
        return (self.anchor,)

    def module(self, build: LossBuildContext) -> LossModule:
        """Return the momentum encoder with its queue."""
        seed = build.seed if self.start == "random" else None
        return MomentumQueue(
            build.encoder,
            build.projector,
            build.width,
            self.queue_size,
            self.momentum,
            random_start=seed,
        )

    def compute(self, embeddings: Embeddings, present: Embeddings, context: Context) -> LossOutput:
        """See the class; one more forward pass over one view."""
        module: MomentumQueue = context.modules[self.name]
        module.follow(context.step)
        loss = super().compute(embeddings, present, context)
        vectors = self._encoded(module, context)
        # Only after the loss: the batch is not its own negative.
        module.enqueue(vectors[context.rows(present, self.anchor)])
        queued = module.vectors.new_full((), float(len(module.vectors)))
        return LossOutput(loss.value, {**loss.reports, "queue": queued})

    def shared_negatives(self, anchors: Tensor, count: int, context: Context) -> list[Tensor]:
        """Return the queue as it was before this batch."""
        return [F.normalize(context.modules[self.name].vectors, dim=-1).to(anchors.dtype)]

    @torch.no_grad()
    def _encoded(self, module: MomentumQueue, context: Context) -> Tensor:
        """Return the momentum encoder's vectors of the global batch; 0 if a row has no anchor."""
        ids, mask = context.tokens[self.anchor]
        nonempty = mask.any(dim=1)
        with context.precision():
            inputs = {
                "input_ids": move(ids[nonempty], context.device),
                "attention_mask": move(mask[nonempty], context.device),
            }
            features = module.encoder(inputs)
        vectors = features["sentence_embedding"]
        rows = vectors.new_zeros(len(ids), vectors.shape[1], dtype=module.vectors.dtype)
        rows[true_cells(nonempty, context.device)] = vectors.to(rows.dtype)
        return context.processes.gather(rows)


class MomentumQueue(LossModule):
    """The momentum copy of the encoder, and the queue of its vectors.

    Args:
        encoder: A sequence of modules from features to features.
        projector: Projector with its current weights, without momentum, as in ESimCSE's code.
        width: Size of the embeddings.
        size: Number of vectors in the queue.
        momentum: λ.
        random_start: Seed of a random start; None to start as the encoder.
    """

    def __init__(
        self,
        encoder: nn.Module,
        projector: nn.Module,
        width: int,
        size: int,
        momentum: float,
        *,
        random_start: int | None = None,
    ) -> None:
        super().__init__()
        # In a tuple, so that PyTorch does not register them: they belong to the network.
        self._online = (encoder, projector)
        parts: Any = encoder
        self.encoder = nn.Sequential(*map(copy.deepcopy, parts))
        self.requires_grad_(False).eval()
        self._momentum = momentum
        self._random_start = random_start
        self.register_buffer("queue", torch.zeros(size, width))
        # Kept on the host, and saved with the weights as extra state.
        self._count = 0
        self._followed = 0

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
        """Move towards the trained weights, once for each optimiser step.

        A random start takes place at step 0, and moves at once. It can be repeated: the loop tries the
        first step before it begins.
        """
        if step == 0 and self._random_start is not None:
            start_at_random(self.encoder, self._random_start)
            self._move()
        if step == self._followed:
            return
        self._followed = step
        self._move()

    def _move(self) -> None:
        """Move the copy once towards the current weights."""
        current = self._online[0]
        for weight, new in zip(self.encoder.parameters(), current.parameters(), strict=True):
            weight.lerp_(new, 1 - self._momentum)
        for statistic, new_statistic in zip(self.encoder.buffers(), current.buffers(), strict=True):
            statistic.copy_(new_statistic)

    @torch.no_grad()
    def enqueue(self, vectors: Tensor) -> None:
        """Add the embeddings of sentence vectors (n, width of the encoder); the oldest leave."""
        buffer = self.get_buffer("queue")
        new = self._online[1](vectors).to(buffer.dtype)
        newest = torch.cat([self.vectors, new])[-len(buffer) :]
        buffer[: len(newest)] = newest
        self._count = len(newest)


@torch.no_grad()
def start_at_random(encoder: nn.Module, seed: int) -> None:
    """Give a transformer the weights that BERT's pre-training starts from, in place.

    Matrices are normal with the deviation of the configuration's `initializer_range`, biases are 0,
    and the gains of LayerNorms are 1.

    Args:
        encoder: A module that holds a transformer.
        seed: Seed of the weights, so that they are the same in every process.
    """
    configs = [getattr(module, "config", None) for module in encoder.modules()]
    ranges = [getattr(config, "initializer_range", None) for config in configs]
    deviation = next((found for found in ranges if found is not None), 0.02)
    generator = torch.Generator("cpu").manual_seed(seed)
    for module in encoder.modules():
        if isinstance(module, nn.LayerNorm):
            module.reset_parameters()
        elif isinstance(module, nn.Linear | nn.Embedding):
            normal = torch.randn(module.weight.shape, generator=generator, device="cpu")
            module.weight.copy_(normal * deviation)
            bias = getattr(module, "bias", None)
            if bias is not None:
                bias.zero_()
