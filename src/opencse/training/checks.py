"""Checks of settings against backbone and processes, and warnings about development scores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencse.encoder.backbone import Backbone
from opencse.encoder.dropout import dropout_rates
from opencse.foundation.errors import OpencseError
from opencse.recipes import Recipe
from opencse.training.loop import TrainingOutcome

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def check_dropout(recipe: Recipe, encoder: SentenceTransformer, backbone: Backbone) -> None:
    """Check that no two views are identical: the same text and prompt, without dropout.

    Raises:
        OpencseError: Two views are identical.
    """
    rates = dropout_rates(encoder)
    base = max(rates, default=0.0)
    seen: dict[tuple[str, str | None], float] = {}
    for view in recipe.used_views.values():
        key, rate = (view.text, view.prompt), base if view.dropout is None else (view.dropout if rates else 0.0)
        if key in seen and max(rate, seen[key]) == 0:
            raise OpencseError(
                f"{backbone}: its dropout is 0, so two views of a sentence would be identical",
                "Set a rate with --set encoder.dropout=0.1.",
            )
        seen[key] = max(rate, seen.get(key, 0.0))


def check_batch(recipe: Recipe, processes: int) -> None:
    """Check that the batch divides evenly among the processes.

    Raises:
        OpencseError: It does not.
    """
    part = recipe.training.batch_size // recipe.training.accumulate
    if part % processes:
        raise OpencseError(
            f"training.batch_size {recipe.training.batch_size} does not divide among {processes} processes "
            f"(times accumulate {recipe.training.accumulate})",
            "Choose a multiple.",
        )


def score_warnings(outcome: TrainingOutcome, recipe: Recipe) -> list[str]:
    """Return warnings about scores below those of the untouched backbone."""
    first, best, selection = outcome.first_score, outcome.best_score, recipe.selection
    if recipe.selection.keep == "best":
        if first is None or best is None or best >= first:
            return []
        message = f"no step stayed above the untouched backbone on the development set ({best:.2f} against {first:.2f})"
        return [message]
    limits = [] if first is None else [f"{selection.tolerance:g} points on the development set"]
    if outcome.guards and selection.guard_tolerance is not None:
        limits.append(f"{selection.guard_tolerance:g} points on each guard")
    if outcome.share == 1 or not limits:
        return []
    lost = f"the trained weights lose more than is allowed ({' and '.join(limits)})"
    if outcome.share == 0:
        return [f"{lost} however little of them is kept: the model is the untouched one"]
    kept = f"{lost}: only {outcome.share:.0%} of the way to them was kept"
    return [kept if best is None else f"{kept} (development score {best:.2f} against {first:.2f} before)"]
