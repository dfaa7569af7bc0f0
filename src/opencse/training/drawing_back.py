"""Drawing a trained encoder back towards its untouched weights, as far as development pairs and guards demand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor, nn

from opencse.foundation.measure import Measures
from opencse.foundation.progress import Phase, timed
from opencse.recipes.settings import Selection
from opencse.training.checkpoint import TrainingState, save_weights
from opencse.training.folder import TRAINED_WEIGHTS


def draw_back(
    encoder: nn.Module,
    untouched: dict[str, Tensor],
    state: TrainingState,
    selection: Selection,
    measures: Measures,
    folder: Path,
    *,
    show: bool = False,
) -> tuple[float, float | None, dict[str, tuple[float, float]]]:
    """Give the encoder the weights that are as near to the trained ones as the scores allow.

    Costs one evaluation of the guards for the untouched weights, and one of the development pairs and of the guards
    for each share of the way that is tried, six at most.

    Args:
        encoder: Holds the trained weights; holds those that are kept afterwards.
        untouched: The weights that the training began with.
        state: The development scores of the untouched encoder (`first_score`) and of the trained one (`best_score`),
            each where it is known.
        selection: How many points each score may fall.
        measures: The development score and the guards' scores, each of which may be missing.
        folder: Folder of the run. The file of the trained weights stays there if others are kept: training is dear,
            and another tolerance needs it.
        show: Show the progress: on a CPU this can take longer than a short training.

    Returns:
        The share of the way that is kept, its development score, and for each guard the score before training and
        that of the kept weights.
    """
    trained, known = folder / TRAINED_WEIGHTS, state.best_score
    save_weights(encoder, trained)
    before: dict[str, float] = {}
    with timed("guards"), Phase("checking the guards", unit="evaluations", show=show) as phase:
        if measures.guards is not None:
            end = copy_weights(encoder)
            interpolate(encoder, untouched, end, 0.0)
            before = measures.guard_scores()
            interpolate(encoder, untouched, end, 1.0)
            del end  # its memory
        phase.update()
        kept = state.first_score, before

        def acceptable() -> bool:
            nonlocal kept, known
            score = state.first_score
            if measures.development is not None:
                score, known = measures.development_score() if known is None else known, None
                if state.first_score is not None and score < state.first_score - selection.tolerance:
                    return False
            after = measures.guard_scores()
            phase.update()
            if any(after[name] < first - (selection.guard_tolerance or 0.0) for name, first in before.items()):
                return False
            kept = score, after
            return True

        share = longest_way(encoder, untouched, acceptable)
    if share == 1:
        trained.unlink()  # they are those of the model
    score, after = kept
    return share, score, {name: (first, after[name]) for name, first in before.items()}


_PARTS = 20
"""Interpolation coefficients are multiples of 1/20."""


def copy_weights(network: nn.Module) -> dict[str, Tensor]:
    """Return copies of all parameters and buffers by name."""
    return {name: tensor.detach().clone() for name, tensor in network.state_dict().items()}


@torch.no_grad()
def interpolate(network: nn.Module, start: dict[str, Tensor], end: dict[str, Tensor], share: float) -> None:
    """Set the weights to `start + share * (end - start)`; tensors of integers are taken from `end`."""
    for name, tensor in network.state_dict().items():
        if tensor.is_floating_point():
            tensor.copy_(torch.lerp(start[name], end[name], share))
        else:
            tensor.copy_(end[name])


def longest_way(network: nn.Module, start: dict[str, Tensor], acceptable: Callable[[], bool]) -> float:
    """Move the weights back towards `start` until they are acceptable.

    The trained weights are tried first. Then bisection finds an interpolation coefficient that is acceptable while the
    next one is not, in at most six trials. Where what is acceptable comes and goes along the way, a larger coefficient
    may be acceptable, too.

    Args:
        network: The network with the trained weights; it has the accepted weights afterwards.
        start: The weights before training (`copy_weights`).
        acceptable: Returns whether the current weights are acceptable; called once for each coefficient that is tried.

    Returns:
        The coefficient of the accepted weights: 1 for the trained ones, 0 if only those before training are left.
    """
    if acceptable():
        return 1.0
    end = copy_weights(network)
    kept, refused = 0, _PARTS
    while refused - kept > 1:
        middle = (kept + refused) // 2
        interpolate(network, start, end, middle / _PARTS)
        kept, refused = (middle, refused) if acceptable() else (kept, middle)
    interpolate(network, start, end, kept / _PARTS)
    return kept / _PARTS
