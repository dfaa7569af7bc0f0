"""Encoder, projector and the parameters of the terms as one trainable module."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from opencse.encoder.denoising import TemplateDenoising
from opencse.encoder.dropout import dropout_rate
from opencse.encoder.packing import packed_as
from opencse.foundation.tensors import move, true_cells
from opencse.losses import Context, Objective, Processes
from opencse.training.batches import Batch
from opencse.training.gather import gather_detached, gather_mask, gather_rows, mean, own_rows
from opencse.training.loop import Trainable

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class Network(Trainable):
    """The network that maps a batch of tokens to the loss.

    As one module, all parts are trained, clipped, checkpointed, synchronised between processes and put into evaluation
    mode together.

    Args:
        encoder: The sentence encoder; only this part is exported.
        projector: Module from sentence vectors to the embeddings of the terms.
        objective: The weighted sum of terms.
        modules: Modules of the terms (`Term.module`), by term name.
        denoisers: Template denoising, by view.
    """

    def __init__(
        self,
        encoder: SentenceTransformer,
        projector: nn.Module,
        objective: Objective,
        modules: Mapping[str, nn.Module] | None = None,
        denoisers: Mapping[str, TemplateDenoising] | None = None,
    ) -> None:
        super().__init__()
        self.encoder = encoder
        self.projector = projector
        self.objective = objective
        self._denoisers = dict(denoisers or {})  # they have no weights
        self.module_names = tuple(modules or {})
        self.auxiliary = nn.ModuleList((modules or {}).values())

    def forward(self, batch: Batch, context: Context, with_norms: bool = False) -> tuple[Tensor, dict[str, Tensor]]:
        """Compute the loss over the global batch.

        Args:
            batch: This process's part of the batch.
            context: Context of the terms.
            with_norms: Also report the gradient norm of each term.

        Returns:
            The weighted sum of the terms, and their unweighted values by name.
        """
        vectors = self.encode(batch)  # (views, rows, width)
        device = vectors.device.type
        autocast = torch.is_autocast_enabled(device), torch.get_autocast_dtype(device)
        with torch.autocast(device, enabled=False):
            vectors = vectors if vectors.dtype == torch.float64 else vectors.float()
            vectors = gather_rows(vectors.transpose(0, 1)).transpose(0, 1)
            known = None if batch.host is None else batch.host.present
            present, host_present = self._present(batch.present, known)
            projected = self._project(vectors, host_present)
            embeddings = dict(zip(batch.views, projected.unbind(), strict=True))
            masks = dict(zip(batch.views, present.unbind(), strict=True))
            context.teachers = {
                name: {view: gather_rows(rows) for view, rows in views.items()}
                for name, views in batch.teachers.items()
            }
            context.tokens = batch.tokens
            context.host_present = dict(zip(batch.views, host_present.unbind(), strict=True))
            context.host_tokens = {} if batch.host is None else batch.host.tokens
            context.modules = dict(zip(self.module_names, self.auxiliary, strict=True))
            context.processes = Processes(own_rows, gather_detached, mean)
            context.precision = lambda: torch.autocast(device, autocast[1], enabled=autocast[0])
            loss, values = self.objective(embeddings, masks, context)
            if with_norms:
                for name, norm in self.objective.gradient_norms(values, embeddings).items():
                    context.report(f"{name}/grad_norm", norm)
        return loss, values

    def encode(self, batch: Batch) -> Tensor:
        """Return the sentence vectors of all views, (views, rows, width); zero if a row lacks the view."""
        vectors, slots = [], []
        for part in batch.passes:
            override = contextlib.nullcontext() if part.dropout is None else dropout_rate(self.encoder, part.dropout)
            with override:
                for ids, mask, packing in part.groups:
                    with packed_as(mask, packing):
                        features = self.encoder({"input_ids": ids, "attention_mask": mask})
                    vectors.append(features["sentence_embedding"])
            slots.append(part.slots)
        rows = torch.cat(vectors)
        slot_of_row = torch.cat(slots)
        if self._denoisers:
            rows = self._denoised(batch.host or batch, rows)
        slotted = rows.new_zeros(len(batch.views) * batch.rows, rows.shape[1])
        return slotted.index_copy(0, slot_of_row, rows).view(len(batch.views), batch.rows, -1)

    def _denoised(self, batch: Batch, rows: Tensor) -> Tensor:
        """Return the vectors (n, width) of a batch, on the host, minus the vectors of their empty templates."""
        slots = torch.cat([part.slots for part in batch.passes])
        lengths = torch.cat([mask.sum(1) for part in batch.passes for mask in part.masks])
        for v, view in enumerate(batch.views):
            chosen = (slots // batch.rows == v).nonzero().squeeze(1)
            if view in self._denoisers and len(chosen):
                denoiser = self._denoisers[view]
                delta = denoiser.delta(lengths[chosen] - len(denoiser.frame))
                rows = rows.index_add(0, move(chosen, rows.device), -delta.to(rows.dtype))
        return rows

    @staticmethod
    def _present(present: Tensor, host: Tensor | None) -> tuple[Tensor, Tensor]:
        """Return the masks (views, rows) over the global batch, on their device and on the CPU."""
        mask, host_mask = gather_mask(present.T, None if host is None else host.T)
        return mask.T, host_mask.T

    def _project(self, vectors: Tensor, present: Tensor) -> Tensor:
        """Return the embeddings of sentence vectors (views, rows, width), given the masks on the CPU."""
        if isinstance(self.projector, nn.Identity):
            return vectors
        flat, chosen = vectors.reshape(-1, vectors.shape[-1]), true_cells(present, vectors.device)
        projected = self.projector(flat[chosen])
        return flat.new_zeros(len(flat), projected.shape[1]).index_copy(0, chosen, projected).view(*present.shape, -1)
