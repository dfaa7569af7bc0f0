"""Settings that cannot work with a backbone or a number of processes, and scores that a user should not overlook."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from opencse.encoder.dropout import dropout_rates
from opencse.errors import OpencseError
from opencse.recipes import Recipe
from opencse.runs.loop import Outcome

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


def check_dropout(recipe: Recipe, encoder: SentenceTransformer, backbone: str | Path) -> None:
    """Refuse two views that would be identical: of the same text, with the same prompt and without dropout.

    Raises:
        OpencseError: There are such views.
    """
    rates = dropout_rates(encoder)
    base = max(rates, default=0.0)
    seen: dict[tuple[str, str | None], float] = {}
    for view in recipe.used_views.values():
        key, rate = (view.text, view.prompt), base if view.dropout is None else (view.dropout if rates else 0.0)
        if key in seen and max(rate, seen[key]) == 0:
            raise OpencseError(
                f"{backbone}: its dropout is 0, so that two views of a sentence would be identical",
                "Set a rate with --set encoder.dropout=0.1.",
            )
        seen[key] = max(rate, seen.get(key, 0.0))


def check_batch(recipe: Recipe, processes: int) -> None:
    """Refuse a batch size that does not divide among the processes.

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


def score_warnings(outcome: Outcome, recipe: Recipe) -> list[str]:
    """Return warnings about development scores below those of the untouched backbone."""
    first, best = outcome.first_score, outcome.best_score
    if first is None or best is None:
        return []
    tolerance = recipe.selection.tolerance
    if outcome.share == 0:
        return [
            f"nothing of the training stayed within {tolerance:g} points of the untouched backbone on the development "
            "set: the model is the untouched one"
        ]
    if outcome.share < 1:
        return [
            f"the development score fell by more than {tolerance:g} points: only {outcome.share:.0%} of the way to the "
            f"trained weights was kept ({best:.2f} against {first:.2f} before)"
        ]
    if recipe.selection.keep == "best" and best < first:
        return [f"no step stayed above the untouched backbone on the development set ({best:.2f} against {first:.2f})"]
    return []
