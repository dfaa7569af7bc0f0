"""Stand-ins for the models that papers take beside the backbone, for published settings on another backbone."""

from __future__ import annotations

from opencse.recipes.schema import Recipe
from opencse.text.generated.likely_words import Insertion, WordSubstitution
from opencse.text.generated.substitution import Substitution


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
