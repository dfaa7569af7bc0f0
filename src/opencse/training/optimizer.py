"""The optimiser, and its learning rate as a function of the step."""

from __future__ import annotations

import math

import torch

from opencse.encoder.meaning_block import block_of
from opencse.recipes.settings import Block, Optimizer, Schedule
from opencse.training.network import Network


def adamw(network: Network, settings: Optimizer, block: Block | None = None) -> torch.optim.AdamW:
    """Return AdamW for the parameters of a network that are trained; each group has its rate at the peak as `peak`."""
    own_rate = {
        id(p): module.learning_rate
        for module in network.head.modules_by_term.values()
        if module.learning_rate is not None
        for p in module.parameters()
    }
    if block is not None and (trained := block_of(network.encoder)) is not None:
        own_rate |= {id(p): block.copy_lr for p in trained.copy.parameters()}
    groups: dict[tuple[float, float], list[torch.nn.Parameter]] = {}
    for parameter in network.parameters():
        if parameter.requires_grad:
            # Only matrices decay: nothing speaks for biases and LayerNorm gains near 0.
            decay = settings.weight_decay if parameter.ndim > 1 else 0.0
            groups.setdefault((own_rate.get(id(parameter), settings.lr), decay), []).append(parameter)
    return torch.optim.AdamW(
        [{"params": members, "peak": rate, "weight_decay": decay} for (rate, decay), members in groups.items()],
        lr=settings.lr,
        betas=settings.betas,
        eps=settings.eps,
        fused=True,
    )


def rate_factor(schedule: Schedule, step: int, steps: int) -> float:
    """Return the learning rate at a step, divided by the peak rate.

    Args:
        schedule: Kind and warm-up.
        step: The optimiser step, from 0.
        steps: Number of steps of the run.

    Returns:
        A factor in [0, 1]; `linear` and `cosine` reach 0 at `step == steps`.
    """
    warmup = schedule.warmup if isinstance(schedule.warmup, int) else math.ceil(schedule.warmup * steps)
    if step < warmup:
        return step / warmup
    if schedule.kind == "constant":
        return 1.0
    left = (steps - step) / max(steps - warmup, 1)
    return max(left, 0.0) if schedule.kind == "linear" else 0.5 * (1 + math.cos(math.pi * (1 - left)))
