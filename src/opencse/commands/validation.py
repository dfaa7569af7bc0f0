"""What is measured of a model while it trains, read from the user's data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from opencse.commands.options import TrainOptions
from opencse.encoder.embedder import Precision
from opencse.evaluation import PairsTask, ScoredPairs, Task, load_development, load_guard
from opencse.evaluation.measures import PairGeometry, TaskScores
from opencse.evaluation.sts_sources import development_sets
from opencse.foundation.errors import OpencseError
from opencse.foundation.measure import Measures
from opencse.recipes import Recipe
from opencse.text.corpus import Corpus
from opencse.training.folder import begun_precision


def read_validation(recipe: Recipe, corpus: Corpus, options: TrainOptions) -> Measures:
    """Read the data on which a model is scored while it trains.

    Args:
        recipe: The resolved recipe.
        corpus: The user's texts, which your searches search if the guard has no documents of its own.
        options: The options; a run that is resumed is scored in the precision that it began with.

    Returns:
        Development score, and what the recipe watches of the first development set (`Selection.watch`); for a recipe
        with a meaning block, its guards, the development sets among them, and measures of meaning.

    Raises:
        OpencseError: A file cannot be read, the folder holds no guards, or the recipe uses none.
    """
    selection, begun = recipe.selection, begun_precision(Path(options.out)) if options.resume else None
    trained = begun or recipe.training.precision
    precision: Precision = "auto" if trained == "fp16" else trained
    sets = development_sets(options.dev, options.data, selection.tasks)
    guards = _guards(recipe, options.guard, corpus.texts)
    if recipe.block is not None:  # pairs guard what the untouched model knows; what the block learns, they don't show
        return Measures(
            guards=TaskScores([*guards, *(PairsTask(pairs=pairs) for pairs in sets)], precision),
            meaning=TaskScores(load_development(), precision),
        )
    return Measures(
        development=_development(sets, precision),
        watch=[PairGeometry(sets[0], selection.watch, precision)] if sets and selection.watch else [],
    )


def first_stage_measures(dev: str | Path | None, data: str | Path | None) -> Measures:
    """Return the measures of a model that builds text columns: one development score, with arguments as above."""
    return Measures(development=_development(development_sets(dev, data), "auto"))


def _development(sets: Sequence[ScoredPairs], precision: Precision) -> TaskScores | None:
    """Return Spearman's correlation x 100 on each set; None without sets."""
    return TaskScores([PairsTask(pairs=pairs) for pairs in sets], precision) if sets else None


def _guards(recipe: Recipe, own: str | Path | None, texts: Callable[[], Iterator[str]]) -> list[Task]:
    """Return the guards of a run: those that come with opencse, and the user's own."""
    if recipe.block is None:
        if own is not None:
            raise OpencseError(f"the recipe {recipe.name} uses no guards", "They are for recipes with a meaning block.")
        return []
    if own is None:
        return load_guard()
    return [*load_guard(), *load_guard(own, prefix="own", documents=texts())]
