"""Changes of a whole recipe: shortened for a trial, or with the backbone in place of models that it names."""

from __future__ import annotations

from dataclasses import replace

from opencse.recipes.schema import Recipe
from opencse.text.generated.likely_words import Insertion, WordSubstitution
from opencse.text.generated.substitution import Substitution

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


def stand_ins(recipe: Recipe, backbone: str) -> list[str]:
    """Return the settings with which the backbone takes the place of other models, which would not fit it.

    These are the generators of terms, the teachers, and the masked language models that write columns.

    Args:
        recipe: The recipe with the settings of a family that the backbone does not belong to.
        backbone: A folder or name.
    """
    writers = (Insertion, WordSubstitution, Substitution)
    return [
        *(f"terms.{term.name}.generator=backbone" for term in recipe.terms if hasattr(term, "generator")),
        *(f"teachers.{name}.model=backbone" for name in recipe.teachers),
        *(f"build.{name}.model='{backbone}'" for name, spec in recipe.build.items() if isinstance(spec, writers)),
    ]
