"""One optimiser step: everything between two batches.

The network maps a batch to its loss (`opencse.training.network`); the loop brings the batches and
calls the callbacks (`opencse.training.loop`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import torch
from torch import Tensor, nn
from torch.distributed.fsdp import FSDPModule
from torch.nn.parallel import DistributedDataParallel

from opencse.encoder.device import autocast
from opencse.training import sharding
from opencse.training.batches import Batch


def train_step(
    network: nn.Module,
    batches: Sequence[Batch],
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,
    *,
    step: int,
    precision: str,
    max_grad_norm: float,
) -> dict[str, Tensor]:
    """Update the weights once.

    Args:
        network: From a batch to the weighted loss, the loss of each term, and reports.
        batches: This process's part of each batch, on the device of the network; their gradients
            are averaged. There is one, unless `training.accumulation_steps` asks for more.
        optimizer: Its groups have their learning rates of this step.
        scaler: Scales the loss in fp16; disabled otherwise.
        step: The optimiser step, from 0.
        precision: Number format of the encoder, `bf16`, `fp16` or `fp32`.
        max_grad_norm: Norm to which the gradient is clipped; 0 for no clipping.

    Returns:
        Scalars for the log: `loss`, the value of each loss, the reports, and `grad_norm`.
    """
    device = batches[0].passes[0].groups[0][0].device
    outputs = []
    for number, batch in enumerate(batches):
        is_last = number == len(batches) - 1
        # Several processes average their gradients once, after the last batch.
        with nullcontext() if is_last else without_averaging(network):
            with autocast(precision, device):
                loss, values, reports = network(batch, step)
            scaler.scale(loss / len(batches)).backward()
        outputs.append({"loss": loss.detach(), **values, **reports})

    # Back to the gradient's own size, so that it is clipped at the norm that was asked for.
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(network.parameters(), max_grad_norm or math.inf)
    norm = sharding.complete_tensor(norm)
    if scaler.is_enabled():
        # fp16 overflowed, and the scaler will skip this step; a checkpoint needs numbers.
        norm = norm.nan_to_num(posinf=0.0)

    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    return {**mean_values(outputs), "grad_norm": norm}


def without_averaging(network: nn.Module) -> AbstractContextManager[None]:
    """Keep the gradients of a backward pass in this process, if there are several."""
    if isinstance(network, DistributedDataParallel):
        return network.no_sync()
    if isinstance(network, FSDPModule):
        return sharding.without_averaging(network)
    return nullcontext()


def mean_values(outputs: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    """Return the means of the values of several batches; a value may be missing in some of them."""
    if len(outputs) == 1:
        return outputs[0]
    found: dict[str, list[Tensor]] = {}
    for values in outputs:
        for name, value in values.items():
            found.setdefault(name, []).append(value.detach())
    return {name: torch.stack(values).mean() for name, values in found.items()}
