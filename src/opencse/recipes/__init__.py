"""Recipes: training systems as short TOML files that read like the papers' formulas."""

from opencse.recipes.load import dump_recipe, load_recipe, recipe_names, shortened
from opencse.recipes.schema import Recipe

__all__ = ["Recipe", "dump_recipe", "load_recipe", "recipe_names", "shortened"]
