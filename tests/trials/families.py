"""All trials, family by family."""

from __future__ import annotations

from collections.abc import Iterator

from tests.trials import (
    corpora,
    folders,
    generated,
    labels,
    models,
    notebooks,
    own_files,
    recipes,
    searches,
    surroundings,
)
from tests.trials.trial import Trial
from tests.trials.world import World


def all_trials(world: World, *, seed: int, count: int) -> Iterator[Trial]:
    """Every written trial, and so many generated ones."""
    yield from corpora.trials(world)
    yield from recipes.trials(world)
    yield from folders.trials(world)
    yield from own_files.trials(world)
    yield from models.trials(world)
    yield from surroundings.trials(world)
    yield from labels.trials(world)
    yield from searches.trials(world)
    yield from notebooks.trials(world)
    yield from generated.trials(world, seed=seed, count=count)
