"""All trials, family by family."""

from __future__ import annotations

from collections.abc import Iterator

from tests.trials import corpora, recipes
from tests.trials.trial import Trial
from tests.trials.world import World


def all_trials(world: World, *, seed: int, generated: int) -> Iterator[Trial]:
    """Every written trial, and as many generated ones as asked for."""
    yield from corpora.trials(world)
    yield from recipes.trials(world)
