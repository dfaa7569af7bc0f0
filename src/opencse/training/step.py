"""One optimiser step: everything between two batches.

The network maps a batch to its loss (`opencse.training.network`); the loop brings the batches and
calls the callbacks (`opencse.training.loop`).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from opencse.encoder.device import autocast
from opencse.training.batches import Batch


def train_step(
    network: nn.Module,
    batch: Batch,
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
        batch: This process's part of the batch, on the device of the network.
        optimizer: Its groups have their learning rates of this step.
        scaler: Scales the loss in fp16; disabled otherwise.
        step: The optimiser step, from 0.
        precision: Number format of the encoder, `bf16`, `fp16` or `fp32`.
        max_grad_norm: Norm to which the gradient is clipped; 0 for no clipping.

    Returns:
        Scalars for the log: `loss`, the value of each loss, the reports, and `grad_norm`.
    """
    device = batch.passes[0].groups[0][0].device
    with autocast(precision, device):
        loss, values, reports = network(batch, step)
    scaler.scale(loss).backward()

    # Back to the gradient's own size, so that it is clipped at the norm that was asked for.
    scaler.unscale_(optimizer)
    norm = nn.utils.clip_grad_norm_(network.parameters(), max_grad_norm or math.inf)
    if scaler.is_enabled():
        # fp16 overflowed, and the scaler will skip this step; a checkpoint needs numbers.
        norm = norm.nan_to_num(posinf=0.0)

    scaler.step(optimizer)
    scaler.update()
    optimizer.zero_grad(set_to_none=True)
    return {"loss": loss, **values, **reports, "grad_norm": norm}
