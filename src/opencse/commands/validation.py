"""Validation data of a training run: development pairs and guards."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opencse.encoder.embedder import Precision
from opencse.evaluation import ScoredPairs, Task, load_guard
from opencse.evaluation.development import development_scorer, development_sets, task_scorer
from opencse.foundation.errors import OpencseError
from opencse.recipes import Recipe

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


@dataclass(frozen=True, kw_only=True)
class ValidationData:
    """The data on which a model is scored while it trains.

    Attributes:
        development: Scored pairs, which choose the step that is kept.
        guards: Tasks whose scores must not fall.
    """

    development: list[ScoredPairs]
    guards: list[Task]

    def __bool__(self) -> bool:
        return bool(self.development or self.guards)

    def scorer(self, precision: Precision) -> Callable[[SentenceTransformer], Callable[[], float]] | None:
        """Return a function from an encoder to its development score; None without development pairs."""
        if not self.development:
            return None
        return lambda encoder: development_scorer(encoder, self.development, precision)

    def guard_scorer(
        self, precision: Precision
    ) -> Callable[[SentenceTransformer], Callable[[], dict[str, float]]] | None:
        """Return a function from an encoder, not trained yet, to its scores by guard; None without guards."""
        if not self.guards:
            return None
        return lambda encoder: task_scorer(encoder, self.guards, precision)


def read_validation(
    recipe: Recipe,
    texts: Callable[[], Iterator[str]],
    *,
    dev: str | Path | None,
    data: str | Path | None,
    guard: str | Path | None,
) -> ValidationData:
    """Read the data on which a model is scored while it trains.

    Args:
        recipe: The resolved recipe.
        texts: The user's texts, which your searches search if the guard has no documents of its own.
        dev: As for `opencse.train`.
        data: As for `opencse.train`.
        guard: As for `opencse.train`.

    Raises:
        OpencseError: A file cannot be read, the folder holds no guards, or the recipe uses none.
    """
    development = development_sets(dev, data, recipe.selection.tasks)
    return ValidationData(development=development, guards=_guards(recipe, guard, texts))


def _guards(recipe: Recipe, own: str | Path | None, texts: Callable[[], Iterator[str]]) -> list[Task]:
    """Return the guards of a run: those that come with opencse, and the user's own."""
    if recipe.selection.guard_tolerance is None:
        if own is not None:
            raise OpencseError(
                f"the recipe {recipe.name} uses no guards",
                "Give it one: --set selection.keep=last --set selection.guard_tolerance=0.3.",
            )
        return []
    if own is None:
        return load_guard()
    return [*load_guard(), *load_guard(own, prefix="own", documents=texts())]
