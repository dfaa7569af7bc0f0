"""Drawing a trained encoder back towards its untouched weights, as far as development pairs and guards demand."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torch import Tensor, nn

from opencse.foundation.measure import Measures
from opencse.foundation.progress import Phase, timed
from opencse.recipes.optimization import Selection
from opencse.training.blending import copy_weights, interpolate, longest_way
from opencse.training.checkpoint import save_weights


@dataclass(frozen=True)
class Limits:
    """Scores that the trained encoder must keep.

    Attributes:
        selection: How many points each score may fall.
        first_score: The development score of the untouched encoder.
        last_score: That of the trained one, where it is known.
        measures: The development score and the guards' scores of the encoder, both optional.
    """

    selection: Selection
    first_score: float | None
    last_score: float | None
    measures: Measures

    def least(self, before: float) -> float:
        """Return the least acceptable score of a guard that the untouched encoder scores `before`."""
        return before - (self.selection.guard_tolerance or 0.0)


def draw_back(
    encoder: nn.Module, untouched: dict[str, Tensor], limits: Limits, trained: Path, *, show: bool = False
) -> tuple[float, float | None, dict[str, tuple[float, float]]]:
    """Give the encoder the weights that are as near to the trained ones as the limits allow.

    Costs one evaluation of the guards for the untouched weights, and one of the development pairs and of the guards
    for each share of the way that is tried, six at most.

    Args:
        encoder: Holds the trained weights; holds those that are kept afterwards.
        untouched: The weights that the training began with.
        limits: What must not be lost.
        trained: File for the trained weights, which stays if others are kept: training is dear, and another tolerance
            needs it.
        show: Show the progress: on a CPU this can take longer than a short training.

    Returns:
        The share of the way that is kept, its development score, and for each guard the score before training and
        that of the kept weights.
    """
    save_weights(encoder, trained)
    with timed("guards"), Phase("checking the guards", unit="evaluations", show=show) as phase:
        return _acceptable_weights(encoder, untouched, limits, trained, phase)


def _acceptable_weights(
    encoder: nn.Module, untouched: dict[str, Tensor], limits: Limits, trained: Path, phase: Phase
) -> tuple[float, float | None, dict[str, tuple[float, float]]]:
    """Find and set the weights; arguments and result as of `draw_back`."""
    before = _untouched_scores(encoder, untouched, limits)
    phase.update()
    kept: tuple[float | None, dict[str, float]] = limits.first_score, before
    known = limits.last_score

    def acceptable() -> bool:
        nonlocal kept, known
        score = limits.first_score
        if limits.measures.development is not None:
            score, known = limits.measures.development_score() if known is None else known, None
            if limits.first_score is not None and score < limits.first_score - limits.selection.tolerance:
                return False
        after = limits.measures.guard_scores()
        phase.update()
        if any(after[name] < limits.least(first) for name, first in before.items()):
            return False
        kept = score, after
        return True

    share = longest_way(encoder, untouched, acceptable)
    if share == 1:
        trained.unlink()  # they are those of the model
    score, after = kept
    return share, score, {name: (first, after[name]) for name, first in before.items()}


def _untouched_scores(encoder: nn.Module, untouched: dict[str, Tensor], limits: Limits) -> dict[str, float]:
    """Return the guards' scores of the untouched weights."""
    if limits.measures.guards is None:
        return {}
    trained = copy_weights(encoder)
    interpolate(encoder, untouched, trained, 0.0)
    scores = limits.measures.guard_scores()
    interpolate(encoder, untouched, trained, 1.0)
    return scores
