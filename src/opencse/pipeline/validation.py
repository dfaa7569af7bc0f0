"""Validation data of a training run: development pairs, guards, and texts whose stored vectors must stay usable."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opencse.encoder import load_encoder
from opencse.encoder.embedder import Embedder, Precision
from opencse.errors import OpencseError
from opencse.evaluation import PairsTask, ScoredPairs, Task, load_guard
from opencse.evaluation.compatibility import CompatibilityTask, compared_texts
from opencse.evaluation.development import development_scorer, development_sets, task_scorer
from opencse.evaluation.truncated import TruncatedTask
from opencse.recipes import Recipe

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


@dataclass(frozen=True, kw_only=True)
class ValidationData:
    """The data on which a model is scored while it trains.

    Attributes:
        development: Scored pairs, which choose the step that is kept.
        guards: Tasks whose scores must not fall.
        stored: Texts for which old and new vectors are compared; None if the recipe sets no limit on them.
    """

    development: list[ScoredPairs]
    guards: list[Task]
    stored: list[str] | None

    def __bool__(self) -> bool:
        return bool(self.development or self.guards) or self.stored is not None

    def scorer(self, precision: Precision) -> Callable[[SentenceTransformer], Callable[[], float]] | None:
        """Return a function from an encoder to its development score; None without development pairs."""
        if not self.development:
            return None
        return lambda encoder: development_scorer(encoder, self.development, precision)

    def guard_scorer(
        self, precision: Precision
    ) -> Callable[[SentenceTransformer], Callable[[], dict[str, float]]] | None:
        """Return a function from an encoder, not trained yet, to its scores by guard; None without guards."""
        if not self.guards and self.stored is None:
            return None

        def scorer(encoder: SentenceTransformer) -> Callable[[], dict[str, float]]:
            if self.stored is None:
                return task_scorer(encoder, self.guards, precision)
            old = Embedder(encoder, precision=precision)(self.stored)
            return task_scorer(encoder, [*self.guards, CompatibilityTask(items=self.stored, old=old)], precision)

        return scorer


def read_validation(
    recipe: Recipe,
    texts: Callable[[], Iterator[str]],
    *,
    backbone: str | Path,
    dev: str | Path | None,
    data: str | Path | None,
    guard: str | Path | None,
) -> ValidationData:
    """Read the data on which a model is scored while it trains.

    Args:
        recipe: The resolved recipe.
        texts: The user's texts, which your searches search if the guard has no documents of its own.
        backbone: The model to be trained.
        dev: As for `opencse.train`.
        data: As for `opencse.train`.
        guard: As for `opencse.train`.

    Raises:
        OpencseError: A file cannot be read, the folder holds no guards, the recipe uses none, or the model has too few
            dimensions to be truncated.
    """
    development, guards = development_sets(dev, data, recipe.selection.tasks), _guards(recipe, guard, texts)
    if recipe.selection.dimensions:
        guards += _truncated([*guards, *(PairsTask(pairs=pairs) for pairs in development)], recipe, backbone)
    return ValidationData(
        development=development,
        guards=guards,
        stored=None if recipe.selection.compatible is None else compared_texts(texts()),
    )


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


def _truncated(tasks: list[Task], recipe: Recipe, backbone: str | Path) -> list[Task]:
    """Return the tasks for each number of dimensions to which the recipe truncates vectors."""
    width = Embedder(load_encoder(backbone, **recipe.pooling)).dimension
    for dimensions in recipe.selection.dimensions:
        if dimensions >= width:
            raise OpencseError(
                f"vectors cannot be truncated to {dimensions} dimensions: those of {backbone} have {width}",
                "Give smaller numbers with --dimensions.",
            )
    return [TruncatedTask(task=task, dimensions=number) for number in recipe.selection.dimensions for task in tasks]
