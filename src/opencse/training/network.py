"""Encoder, projector and the parameters of the losses as one trainable module.

Every process computes the objective on the same global batch, so all have the same gradient for
every row. The gradient of the gathering is the sum over processes, which is W times the gradient of
a process's own rows: no communication is needed. Averaged over the W processes, as
DistributedDataParallel does (`prepare_model` in loop.py), the encoder's gradient is exactly that of
one process with the whole batch, and so is that of projectors and losses, which work on gathered
rows. The loss itself is not averaged: it is the same in every process.

A loss with much computation per row (a discriminator over tokens) takes its own rows out of the
gathered embeddings instead (`own_rows`) and averages over the processes at its end (`mean`). Both
keep the rule above: every process has the complete gradient with respect to the gathered
embeddings, and the gradient of the loss's parameters is correct once averaged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from opencse.debias.meaning_block import block_of
from opencse.encoder.device import world_size
from opencse.encoder.dropout import dropout_rate
from opencse.encoder.loading import load_masked_lm
from opencse.encoder.packing import Packing, use_packed_attention
from opencse.encoder.prompts import TemplateDenoising
from opencse.foundation.errors import OpencseError
from opencse.foundation.tensors import move, true_cells
from opencse.losses import Context, Loss, LossBuildContext, LossModule, Objective, Processes
from opencse.training.batches import Batch

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class LossHead(nn.Module):
    """The network after the encoder: from sentence vectors to the loss.

    Args:
        projector: Module from sentence vectors to the embeddings of the losses.
        objective: The weighted sum of losses.
        modules: Modules of the losses (`Loss.module`), by loss name; trained, but not exported.
        dimensions: Numbers of dimensions at which the objective acts, the largest first; by default
            on whole vectors.
    """

    def __init__(
        self,
        projector: nn.Module,
        objective: Objective,
        modules: Mapping[str, LossModule],
        dimensions: Sequence[int] = (),
    ) -> None:
        super().__init__()
        self._dimensions = tuple(dimensions)
        self.projector = projector
        self.objective = objective
        self.modules_by_loss = dict(modules)
        self.auxiliary = nn.ModuleList(modules.values())

    def forward(
        self, vectors: Tensor, batch: Batch, step: int = 0
    ) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
        """Compute the loss over the global batch.

        Args:
            vectors: Sentence vectors of all views, (views, rows, width), from `encode`.
            batch: This process's part of the batch.
            step: The optimiser step, from 0.

        Returns:
            The weighted sum of the losses, their unweighted values by name, and their reports.
        """
        device = vectors.device.type
        autocast = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
        with torch.autocast(device, enabled=False):
            vectors = vectors if vectors.dtype == torch.float64 else vectors.float()
            vectors = gather_rows(vectors.transpose(0, 1)).transpose(0, 1)
            present = batch.present
            if world_size() > 1:
                present = _gathered(move(present.T, vectors.device)).T.cpu()
            embeddings = dict(
                zip(batch.views, self._project(vectors, present).unbind(), strict=True)
            )
            truncated = {
                size: dict(
                    zip(batch.views, self._project(vectors, present, size).unbind(), strict=True)
                )
                for size in self._dimensions
            }
            context = Context(
                step=step,
                teachers={
                    name: {view: gather_rows(rows) for view, rows in views.items()}
                    for name, views in batch.teachers.items()
                },
                tokens=batch.tokens,
                device=vectors.device,
                modules=self.modules_by_loss,
                processes=Processes(own_rows, lambda rows: gather_rows(rows.detach()), mean),
                precision=lambda: torch.autocast(device, autocast[1], enabled=autocast[0]),
            )
            masks = dict(zip(batch.views, present.unbind(), strict=True))
            return self.objective(embeddings, masks, context, truncated)

    def _project(self, vectors: Tensor, present: Tensor, size: int | None = None) -> Tensor:
        """Return the embeddings of sentence vectors (views, rows, width), given the masks on the CPU.

        Those of the first `size` numbers have length 1; a projector reads zeros in place of the
        others.
        """
        width = vectors.shape[-1]
        cut = vectors[..., :size]
        if not isinstance(self.projector, nn.Identity):
            flat, chosen = cut.reshape(-1, cut.shape[-1]), true_cells(present, vectors.device)
            projected = self.projector(F.pad(flat[chosen], (0, width - flat.shape[1])))
            cut = flat.new_zeros(len(flat), projected.shape[1]).index_copy(0, chosen, projected)
            cut = cut.view(*present.shape, -1)
        return cut if size in (None, width) else F.normalize(cut, dim=-1)


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
    """

    def vectors_of(
        ids: Tensor, mask: Tensor, packing: Packing | None, dropout: float | None
    ) -> Tensor:
        layout: dict[str, Any] = {} if packing is None else {"packing": packing}
        with dropout_rate(encoder, dropout):
            features = encoder({"input_ids": ids, "attention_mask": mask, **layout})
        vectors: Tensor = features.get("meaning_parts", features["sentence_embedding"])
        return vectors

    run = partial(checkpoint, vectors_of, use_reentrant=False) if twice else vectors_of
    rows = torch.cat([run(*group, part.dropout) for part in batch.passes for group in part.groups])
    slots, lengths = (
        torch.cat([getattr(part, name) for part in batch.passes]) for name in ("slots", "lengths")
    )
    for view, denoiser in (denoisers or {}).items():
        chosen = (slots // batch.rows == batch.views.index(view)).nonzero().squeeze(1)
        if len(chosen):
            delta = denoiser.delta(lengths[chosen] - len(denoiser.frame))
            rows = rows.index_add(0, move(chosen, rows.device), -delta.to(rows.dtype))
    slotted = rows.new_zeros(len(batch.views) * batch.rows, rows.shape[1])
    return slotted.index_copy(0, move(slots, rows.device), rows).view(
        len(batch.views), batch.rows, -1
    )


def loss_modules(
    losses: Sequence[Loss],
    encoder: SentenceTransformer,
    projector: nn.Module,
    tokenizer: Any,
    backbone: str,
    seed: int,
    device: torch.device,
) -> dict[str, LossModule]:
    """Return the modules of the losses, by loss name.

    Args:
        losses: The losses.
        encoder: The encoder with its initial weights.
        projector: The projector after the encoder.
        tokenizer: The tokenizer of the model, without any template.
        backbone: Name of the model that the encoder was loaded from.
        seed: Seed of the run.
        device: The device of the training steps.

    Raises:
        OpencseError: A loss cannot be built with this encoder; the message names it.
    """
    build = LossBuildContext(
        width=encoder.get_embedding_dimension() or 0,
        encoder=encoder,
        projector=projector,
        transformer=getattr(encoder[0], "auto_model", None),
        tokenizer=tokenizer,
        masked_lm=partial(_masked_lm, tokenizer, backbone, device),
        seed=seed,
    )
    modules = {}
    for loss in losses:
        try:
            module = loss.module(build)
        except (OpencseError, ValueError) as error:
            problem, remedy = getattr(error, "problem", str(error)), getattr(error, "remedy", "")
            raise OpencseError(f"loss '{loss.name}': {problem}", remedy) from error
        if module is not None:
            modules[loss.name] = module
    return modules


def _masked_lm(tokenizer: Any, backbone: str, device: torch.device, name: str) -> nn.Module:
    """Return a masked language model with the vocabulary of the tokenizer; `backbone` names the model of the run."""
    remedy = (
        "Pass a masked language model with the encoder's vocabulary: --set losses.NAME.generator=…"
    )
    try:
        model, own = load_masked_lm(backbone if name == "backbone" else name)
    except OpencseError as error:
        raise OpencseError(error.problem, f"{remedy} ({error.remedy})") from error
    if own.get_vocab() != tokenizer.get_vocab():
        raise OpencseError(
            f"the masked language model '{name}' has another vocabulary ({len(own)} tokens) than the encoder "
            f"({len(tokenizer)} tokens)",
            remedy,
        )
    assert isinstance(model, nn.Module)
    if device.type != "cpu":
        use_packed_attention(model)  # transformers' own would read every mask from the device
    return model


class _GatherRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        ctx.count = rows.shape[0]
        return _gathered(rows)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        start = dist.get_rank() * ctx.count
        return gradients[0][start : start + ctx.count] * dist.get_world_size()


class _OwnRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        count = rows.shape[0] // dist.get_world_size()
        return rows[dist.get_rank() * count :][:count].clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        # `mean` scales the gradient by the number of processes, so that the loss's parameters get
        # theirs.
        return _gathered(gradients[0]) / dist.get_world_size()


def gather_rows(rows: Tensor) -> Tensor:
    """Concatenate the rows of all processes in the order of their ranks; with one process, return the same tensor.

    Args:
        rows: Shape (n, ...), the same in every process.
    """
    if world_size() == 1:
        return rows
    if rows.requires_grad:
        return _GatherRows.apply(rows)  # type: ignore[no-untyped-call]
    return _gathered(rows)


def own_rows(rows: Tensor) -> Tensor:
    """Return this process's part of a tensor (B, ...) over the global batch; the reverse of `gather_rows`."""
    return rows if world_size() == 1 else _OwnRows.apply(rows)  # type: ignore[no-untyped-call]


def mean(total: Tensor, count: Tensor) -> Tensor:
    """Return the mean over all processes from the sum and count of each; its gradient is correct once averaged."""
    if world_size() == 1:
        return total / count.clamp(min=1)
    sums = torch.stack([total.detach(), count.to(total.dtype)])
    dist.all_reduce(sums)
    count = sums[1].clamp(min=1)
    share = total * dist.get_world_size() / count
    return share + (sums[0] / count - share).detach()


def _gathered(rows: Tensor) -> Tensor:
    parts = [
        torch.empty_like(rows, memory_format=torch.contiguous_format)
        for _ in range(dist.get_world_size())
    ]
    dist.all_gather(parts, rows.contiguous())
    return torch.cat(parts)
