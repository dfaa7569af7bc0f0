"""A part of a recipe's training: the same proportions, with fewer sentences and steps."""

from __future__ import annotations

from dataclasses import replace
from math import ceil

from opencse.recipes.schema import Recipe

_LEAST_ROWS = 50


def scaled(recipe: Recipe, share: float, steps: int) -> Recipe:
    """Return the recipe with a share of its sentences, rows and steps.

    Args:
        recipe: Any resolved recipe.
        share: Above 0; 1 or more returns the recipe as it is.
        steps: Steps of the whole recipe on the corpus at hand.
    """
    if share >= 1:
        return recipe
    corpus, most_steps = recipe.corpus, max(1, ceil(steps * share))
    return replace(
        recipe,
        corpus=replace(
            corpus,
            rows=None if corpus.rows is None else max(_LEAST_ROWS, ceil(corpus.rows * share)),
            opposites=ceil(corpus.opposites * share),
            paraphrases=None if corpus.paraphrases is None else ceil(corpus.paraphrases * share),
            parts={name: replace(part, rows=ceil(part.rows * share)) for name, part in corpus.parts.items()},
        ),
        training=replace(recipe.training, max_steps=most_steps),
        selection=replace(recipe.selection, every=min(recipe.selection.every, most_steps)),
    )
