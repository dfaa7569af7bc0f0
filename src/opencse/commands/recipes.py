"""`opencse.list_recipes`: the recipes that come with the package."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import RenderableType
from rich.jupyter import JupyterMixin

from opencse.foundation.result_table import Table
from opencse.recipes import Recipe, load_recipe, recipe_names


@dataclass(frozen=True, repr=False)
class RecipeList(JupyterMixin):
    """Recipes by name, displayed as a table in a terminal (rich) and in a notebook.

    Attributes:
        recipes: The recipes, in their default variant.
    """

    recipes: dict[str, Recipe]

    def __repr__(self) -> str:
        return f"RecipeList({', '.join(self.recipes)})"

    def __rich__(self) -> RenderableType:
        rows = []
        for name, recipe in self.recipes.items():
            columns = [column + (" (optional)" if optional else "") for column, optional in recipe.columns.items()]
            rows.append((name, recipe.title, recipe.paper, ", ".join(columns)))
        return Table(("recipe", "title", "paper", "columns it needs"), rows)


def list_recipes() -> RecipeList:
    """Return the recipes that come with the package."""
    return RecipeList({name: load_recipe(name) for name in recipe_names()})


def published_table(name: str, family: str | None = None) -> Table:
    """Return the published settings of a recipe with their sources, beside those that it has.

    Args:
        name: The recipe.
        family: One family of backbones; None for all.
    """
    from opencse.recipes.published_settings import PUBLISHED_FAMILIES, conformity

    rows = []
    for entry, sound, faithful in conformity(name, PUBLISHED_FAMILIES if family is None else (family,)):
        values = ("" if value is None else str(value) for value in (entry.published, entry.coded, sound, faithful))
        rows.append((entry.key, entry.family, *values, "; ".join(filter(None, (entry.source, entry.why)))))
    none = () if rows else (f"nothing was published for {name} with the family {family}",)
    return Table(("setting", "backbone", "published", "coded", "default", "faithful", "source"), rows, notes=none)
