"""`opencse.list_recipes`: the recipes that come with the package."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import RenderableType
from rich.jupyter import JupyterMixin
from rich.table import Table

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
        table = Table(box=None, pad_edge=False, header_style="bold")
        for heading in ("recipe", "title", "paper", "columns it needs"):
            table.add_column(heading, overflow="fold")
        for name, recipe in self.recipes.items():
            columns = [column + (" (optional)" if optional else "") for column, optional in recipe.columns.items()]
            table.add_row(name, recipe.title, recipe.paper, ", ".join(columns))
        return table


def list_recipes() -> RecipeList:
    """Return the recipes that come with the package."""
    return RecipeList({name: load_recipe(name) for name in recipe_names()})
