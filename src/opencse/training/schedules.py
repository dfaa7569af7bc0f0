"""Learning rates by step: `linear` and `constant` here, all others as transformers computes them."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import torch

from opencse.foundation.errors import OpencseError
from opencse.recipes.settings import Schedule


def set_learning_rates(optimizer: torch.optim.Optimizer, factor: float) -> None:
    """Give each group of an optimiser its peak rate times a factor."""
    for group in optimizer.param_groups:
        group["lr"] = group["peak"] * factor


def rate_factor(schedule: Schedule, step: int, steps: int, lr: float = 1.0) -> float:
    """Return the learning rate at a step, divided by the peak rate.

    It is a function of the step alone, so a resumed run needs no state, and the schedule can still
    be shortened after the first steps (`--minutes`).

    Args:
        schedule: Kind, warm-up and further settings.
        step: The optimiser step, from 0.
        steps: Number of steps of the run.
        lr: The peak rate, for the kinds that end at an absolute rate (`polynomial`).

    Returns:
        A factor, at most 1; `linear` reaches 0 at `step == steps`.
    """
    warmup = warmup_steps(schedule, steps)
    if schedule.kind not in ("linear", "constant"):
        options = tuple(sorted(schedule.options.items()))
        return _from_transformers(schedule.kind, warmup, steps, lr, options)(step)
    if step < warmup:
        return step / warmup
    if schedule.kind == "constant":
        return 1.0
    return max((steps - step) / max(steps - warmup, 1), 0.0)


def warmup_steps(schedule: Schedule, steps: int) -> int:
    """Return in how many steps of a run the learning rate rises."""
    if isinstance(schedule.warmup, int):
        return schedule.warmup
    return math.ceil(schedule.warmup * steps)


@lru_cache(maxsize=8)
def _from_transformers(
    kind: str, warmup: int, steps: int, lr: float, options: tuple[tuple[str, float], ...]
) -> Callable[[int], float]:
    """Return transformers' function from a step to the factor of the learning rate."""
    from transformers import get_scheduler

    # The scheduler is made only for its function, so it gets a separate optimiser.
    stand_in = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=lr)
    try:
        scheduler: Any = get_scheduler(
            kind,
            stand_in,
            num_warmup_steps=warmup,
            num_training_steps=steps,
            scheduler_specific_kwargs=dict(options),
        )
    except (TypeError, ValueError) as error:
        raise OpencseError(
            f"schedule.kind {kind!r} cannot be made: {error}",
            "Give what it needs in the table schedule.options.",
        ) from error
    function: Callable[[int], float] = scheduler.lr_lambdas[0]
    return function
