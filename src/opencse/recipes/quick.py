"""A trial of a recipe: the same views, terms and reports, in a few steps on a few sentences."""

from __future__ import annotations

from dataclasses import replace

from opencse.recipes.schema import Recipe

STEPS = 20
SENTENCES = 400


def shortened(recipe: Recipe) -> Recipe:
    """Return the recipe with few steps and few sentences.

    The model that comes out has learned next to nothing; the point is to see every stage work within a minute or two.

    Args:
        recipe: Any resolved recipe.
    """
    corpus, training = recipe.corpus, recipe.training
    most = max((part.rows for part in corpus.parts.values()), default=0)
    return replace(
        recipe,
        corpus=replace(
            corpus,
            rows=min(corpus.rows or SENTENCES, SENTENCES),
            opposites=min(corpus.opposites, SENTENCES),
            parts={
                name: replace(part, rows=-(-part.rows * SENTENCES // most)) if part.rows else part
                for name, part in corpus.parts.items()
            },
        ),
        training=replace(training, max_steps=min(training.max_steps or STEPS, STEPS)),
        selection=replace(recipe.selection, every=min(recipe.selection.every, STEPS)),
    )
