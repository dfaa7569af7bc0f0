"""Rows and gradients of several processes.

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

from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from opencse.encoder.device import world_size


class _GatherRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        ctx.count = rows.shape[0]
        return gathered(rows)

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
        return gathered(gradients[0]) / dist.get_world_size()


def gather_rows(rows: Tensor) -> Tensor:
    """Concatenate the rows of all processes in the order of their ranks; with one process, return the same tensor.

    Args:
        rows: Shape (n, ...), the same in every process.
    """
    if world_size() == 1:
        return rows
    if rows.requires_grad:
        return _GatherRows.apply(rows)  # type: ignore[no-untyped-call]
    return gathered(rows)


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


def gathered(rows: Tensor) -> Tensor:
    """Concatenate the rows of all processes, without a gradient; there must be several."""
    parts = [
        torch.empty_like(rows, memory_format=torch.contiguous_format)
        for _ in range(dist.get_world_size())
    ]
    dist.all_gather(parts, rows.contiguous())
    return torch.cat(parts)
