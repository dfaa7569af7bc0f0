"""Embeddings of all processes, with gradients.

Every process computes the objective on the same global batch, so each finds the same gradient for every row. What
flows back through the gathering is the sum over processes, which is W times the gradient of the own rows: no
communication is needed. Averaged over the W processes, as DistributedDataParallel does, the encoder's gradient is
exactly that of one process with the whole batch, and so is that of projectors and terms, which work on gathered rows.

A term with much to compute per row (a discriminator over tokens) takes its own rows out of the gathered embeddings
instead (`own_rows`) and averages over the processes at its end (`mean`). Both keep to the rule above: after them the
gradient with respect to the gathered embeddings is the whole one in every process, and that of the term's parameters is
right once averaged.
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
        # `mean` scales the gradient by the number of processes, for the sake of the term's own parameters.
        return _gathered(gradients[0]) / dist.get_world_size()


def gather_rows(rows: Tensor) -> Tensor:
    """Concatenate the rows of all processes in the order of their ranks; the same tensor where there is one process.

    Args:
        rows: (n, ...), the same shape in every process.
    """
    if _alone():
        return rows
    if rows.requires_grad:
        return _GatherRows.apply(rows)
    return _gathered(rows)


def gather_detached(rows: Tensor) -> Tensor:
    """`gather_rows` without a gradient."""
    return gather_rows(rows.detach())


def own_rows(rows: Tensor) -> Tensor:
    """This process's part of a tensor (B, ...) over the global batch; the reverse of `gather_rows`."""
    return rows if _alone() else _OwnRows.apply(rows)


def mean(total: Tensor, count: Tensor) -> Tensor:
    """The mean over all processes of what each has the sum and count of; its gradient is right once averaged."""
    if _alone():
        return total / count.clamp(min=1)
    sums = torch.stack([total.detach(), count.to(total.dtype)])
    dist.all_reduce(sums)
    count = sums[1].clamp(min=1)
    share = total * dist.get_world_size() / count
    return share + (sums[0] / count - share).detach()


def _alone() -> bool:
    return not (dist.is_available() and dist.is_initialized()) or dist.get_world_size() == 1


def _gathered(rows: Tensor) -> Tensor:
    parts = [torch.empty_like(rows, memory_format=torch.contiguous_format) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, rows.contiguous())
    return torch.cat(parts)
