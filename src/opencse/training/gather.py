"""Embeddings of all processes, with gradients.

Every process computes the objective on the same global batch, so each finds the same gradient for every row. What
flows back through the gathering is the sum over processes, which is W times the gradient of the own rows: no
communication is needed. Averaged over the W processes, as DistributedDataParallel does, the encoder's gradient is
exactly that of one process with the whole batch, and so is that of projectors and terms, which work on gathered rows.
"""

from __future__ import annotations

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor


class _GatherRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        ctx.count = rows.shape[0]
        parts = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, rows.contiguous())
        return torch.cat(parts)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        start = dist.get_rank() * ctx.count
        return gradients[0][start : start + ctx.count] * dist.get_world_size()


def gather_rows(rows: Tensor) -> Tensor:
    """Concatenate the rows of all processes in the order of their ranks; the same tensor where there is one process.

    Args:
        rows: (n, ...), the same shape in every process.
    """
    if not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1:
        return rows
    if rows.requires_grad:
        return _GatherRows.apply(rows)
    parts = [torch.empty_like(rows) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, rows.contiguous())
    return torch.cat(parts)
