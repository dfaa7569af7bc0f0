"""The learning rate as a function of the step."""

from __future__ import annotations

import math

from opencse.recipes.optimization import Schedule


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
