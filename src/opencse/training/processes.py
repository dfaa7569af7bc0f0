"""Rows and gradients of several processes.

Every process computes the objective on the same global batch, so all have the same gradient for
every row. The gradient of the gathering is the sum over processes, which is W times the gradient of
a process's own rows: no communication is needed. Averaged over the W processes, as
DistributedDataParallel does (`prepare_model` in loop.py), the encoder's gradient is exactly that of
one process with the full batch, and so is that of projectors and losses, which work on gathered
rows. The loss itself is not averaged: it is the same in every process.

A loss with much computation per row (a discriminator over tokens) takes its own rows out of the
gathered embeddings instead (`own_rows`) and averages over the processes at its end (`mean`). A loss
that compares each row with all others (InfoNCE) reads these through `all_rows`, so that a process
has the logits of its own rows only. All keep the rule above: every process has the complete
gradient with respect to the gathered embeddings, and the gradient of the loss's parameters is
correct once averaged.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor

from opencse.encoder.device import world_size

# Rows of each process in the batch in hand, if they differ.
_SHARES: list[int] = []


@contextlib.contextmanager
def sharing(shares: Sequence[int]) -> Iterator[None]:
    """Gather and divide the rows of a batch by the given numbers of each process; by equal ones if there are none."""
    # A backward pass shares too, perhaps within such a block.
    outer = list(_SHARES)
    _SHARES[:] = shares
    try:
        yield
    finally:
        _SHARES[:] = outer


class _GatherRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        rank = dist.get_rank()
        ctx.count = rows.shape[0]
        ctx.start = sum(_SHARES[:rank]) if _SHARES else rank * ctx.count
        return gathered(rows)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        return gradients[0][ctx.start : ctx.start + ctx.count] * dist.get_world_size()


class _OwnRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        rank = dist.get_rank()
        ctx.shares = list(_SHARES)
        count = _SHARES[rank] if _SHARES else rows.shape[0] // dist.get_world_size()
        start = sum(_SHARES[:rank]) if _SHARES else rank * count
        return rows[start : start + count].clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        # `mean` scales the gradient by the number of processes, so that the loss's parameters get
        # theirs.
        with sharing(ctx.shares):
            return gathered(gradients[0]) / dist.get_world_size()


class _AllRows(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, rows: Tensor) -> Tensor:
        return rows.view_as(rows)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        # Each process knows what its own rows ask of all rows. As in `_OwnRows`, `mean` has scaled
        # this by the number of processes.
        total = gradients[0].clone(memory_format=torch.contiguous_format)
        dist.all_reduce(total)
        return total / dist.get_world_size()


def gather_rows(rows: Tensor) -> Tensor:
    """Concatenate the rows of all processes in the order of their ranks; with one process, return the same tensor.

    Args:
        rows: Shape (n, ...), the same in every process except for the n of `sharing`.
    """
    if world_size() == 1:
        return rows
    if rows.requires_grad:
        return _GatherRows.apply(rows)  # type: ignore[no-untyped-call]
    return gathered(rows)


def own_rows(rows: Tensor) -> Tensor:
    """Return this process's part of a tensor (B, ...) over the global batch; the reverse of `gather_rows`."""
    return rows if world_size() == 1 else _OwnRows.apply(rows)  # type: ignore[no-untyped-call]


def all_rows(rows: Tensor) -> Tensor:
    """Return the same tensor (B, ...) over the global batch, whose gradient is added up over the processes."""
    return rows if world_size() == 1 else _AllRows.apply(rows)  # type: ignore[no-untyped-call]


def mean(amount: Tensor, count: Tensor) -> Tensor:
    """Return the mean over all processes from the sum and count of each; its gradient is correct once averaged.

    Args:
        amount: A sum over the rows of this process, or a vector of several sums.
        count: What each is divided by, added up over the processes.
    """
    if world_size() == 1:
        return amount / count.clamp(min=1)
    sums = torch.stack([amount.detach(), count.to(amount.dtype)])
    dist.all_reduce(sums)
    count = sums[1].clamp(min=1)
    share = amount * dist.get_world_size() / count
    return share + (sums[0] / count - share).detach()


def total(part: Tensor) -> Tensor:
    """Return the sum over all processes, without a gradient."""
    part = part.detach()
    if world_size() > 1:
        part = part.clone(memory_format=torch.contiguous_format)
        dist.all_reduce(part)
    return part


def gathered(rows: Tensor) -> Tensor:
    """Concatenate the rows of all processes, without a gradient; there must be several."""
    rows = rows.contiguous()
    longest = max(_SHARES, default=len(rows))
    if len(rows) < longest:
        rows = torch.cat([rows, rows.new_zeros(longest - len(rows), *rows.shape[1:])])
    parts = []
    for _ in range(dist.get_world_size()):
        parts.append(torch.empty_like(rows, memory_format=torch.contiguous_format))
    dist.all_gather(parts, rows)
    if _SHARES:
        parts = [part[:count] for part, count in zip(parts, _SHARES, strict=True)]
    return torch.cat(parts)
