"""From sentence vectors to the loss: projector, objective and the modules of the losses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from opencse.encoder.device import world_size
from opencse.encoder.loading import load_masked_lm, load_with_pooler
from opencse.encoder.packing import use_packed_attention
from opencse.foundation.errors import OpencseError
from opencse.foundation.tensors import move, true_cells
from opencse.losses import (
    Context,
    Loss,
    LossBuildContext,
    LossModule,
    Objective,
    Processes,
    TokenOutputs,
)
from opencse.training.batches import Batch
from opencse.training.processes import all_rows, gather_rows, gathered, mean, own_rows, total

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class LossHead(nn.Module):
    """The network after the encoder: from sentence vectors to the loss.

    Args:
        projector: Module from sentence vectors to the embeddings of the losses.
        objective: The weighted sum of losses.
        modules: Modules of the losses (`Loss.module`), by loss name; trained, but not exported.
        dimensions: Numbers of dimensions at which the objective acts, the largest first; by default
            on full vectors.
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
        self,
        vectors: Tensor,
        batch: Batch,
        step: int = 0,
        tokens: Mapping[str, TokenOutputs] | None = None,
    ) -> tuple[Tensor, dict[str, Tensor], dict[str, Tensor]]:
        """Compute the loss over the global batch.

        Args:
            vectors: Sentence vectors of all views, (views, rows, width), from `encode`.
            batch: This process's part of the batch.
            step: The optimiser step, from 0.
            tokens: The encoder's outputs at each token, by view, for losses that read them.

        Returns:
            The weighted sum of the losses, their unweighted values by name, and their reports.
        """
        device = vectors.device.type
        precision = partial(
            torch.autocast,
            device,
            torch.get_autocast_dtype(device),
            enabled=torch.is_autocast_enabled(device),
        )
        # Losses are computed in full precision, whatever the encoder computes in.
        with torch.autocast(device, enabled=False):
            if vectors.dtype != torch.float64:
                vectors = vectors.float()
            vectors = gather_rows(vectors.transpose(0, 1)).transpose(0, 1)
            present = batch.present
            if batch.everyone is not None:
                present = batch.everyone
            elif world_size() > 1:
                present = gathered(move(present.T, vectors.device)).T.cpu()
            context = Context(
                step=step,
                teachers={
                    name: {view: gather_rows(rows) for view, rows in views.items()}
                    for name, views in batch.teachers.items()
                },
                tokens=batch.tokens,
                device=vectors.device,
                modules=self.modules_by_loss,
                processes=Processes(
                    own_rows=own_rows,
                    all_rows=all_rows,
                    gather=lambda rows: gather_rows(rows.detach()),
                    gather_trained=gather_rows,
                    mean=mean,
                    total=total,
                ),
                precision=precision,
                vectors=dict(zip(batch.views, vectors.unbind(), strict=True)),
                draws=batch.draws,
                token_outputs=tokens or {},
            )
            embeddings = self._embeddings(vectors, present, batch.views)
            truncated = {}
            for size in self._dimensions:
                truncated[size] = self._embeddings(vectors, present, batch.views, size)
            masks = dict(zip(batch.views, present.unbind(), strict=True))
            return self.objective(embeddings, masks, context, truncated)

    def _embeddings(
        self, vectors: Tensor, present: Tensor, views: Sequence[str], size: int | None = None
    ) -> dict[str, Tensor]:
        """Return the projected vectors by view, those of the first `size` numbers with length 1.

        Args:
            vectors: Sentence vectors, (views, rows, width).
            present: Mask of the views that each row has, (views, rows), on the CPU.
            views: Names of the views.
            size: Number of dimensions; None for all.
        """
        width = vectors.shape[-1]
        cut = vectors[..., :size]
        if not isinstance(self.projector, nn.Identity):
            cut = self._projected(cut, present, width)
        if size not in (None, width):
            cut = F.normalize(cut, dim=-1)
        return dict(zip(views, cut.unbind(), strict=True))

    def _projected(self, vectors: Tensor, present: Tensor, width: int) -> Tensor:
        """Project the vectors of the views that rows have; BatchNorm must not see the others."""
        flat = vectors.reshape(-1, vectors.shape[-1])
        chosen = true_cells(present, vectors.device)
        # A projector reads zeros in place of the numbers that were cut.
        projected = self.projector(F.pad(flat[chosen], (0, width - flat.shape[1])))
        filled = flat.new_zeros(len(flat), projected.shape[1]).index_copy(0, chosen, projected)
        return filled.view(*present.shape, -1)


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
        with_pooler=partial(_with_pooler, tokenizer, backbone),
        seed=seed,
    )
    modules = {}
    for loss in losses:
        try:
            module = loss.module(build)
        except (OpencseError, ValueError) as error:
            problem = getattr(error, "problem", str(error))
            remedy = getattr(error, "remedy", "")
            raise OpencseError(f"loss '{loss.name}': {problem}", remedy) from error
        if module is None:
            continue
        if not isinstance(module, LossModule):
            raise OpencseError(
                f"loss '{loss.name}': its module is a {type(module).__name__}, not a LossModule",
                "Derive it from opencse.losses.LossModule instead of torch.nn.Module.",
            )
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
        # transformers' own attention reads every mask from the device, and so waits for it.
        use_packed_attention(model)
    return model


def _with_pooler(tokenizer: Any, backbone: str, name: str) -> nn.Module:
    """Return a transformer and its pooler with the vocabulary of the tokenizer; `backbone` names the model of the run."""
    model, own = load_with_pooler(backbone if name == "backbone" else name)
    if own.get_vocab() != tokenizer.get_vocab():
        raise OpencseError(
            f"'{name}' has another vocabulary than the encoder",
            "Pass a model with the encoder's vocabulary: --set losses.NAME.complementary=…",
        )
    return model
