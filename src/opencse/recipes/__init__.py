"""Recipes: training systems as short TOML files that read like the papers' formulas."""

from opencse.recipes.families import FAMILIES, family_of
from opencse.recipes.load import dump_recipe, load_recipe, recipe_names
from opencse.recipes.quick import shortened
from opencse.recipes.schema import (
    Corpus,
    Encoder,
    FirstStage,
    Optimizer,
    Part,
    PolarityHead,
    Recipe,
    Schedule,
    Selection,
    TaskVector,
    Teacher,
    Training,
    View,
)

__all__ = [
    "FAMILIES",
    "Corpus",
    "Encoder",
    "FirstStage",
    "Optimizer",
    "Part",
    "PolarityHead",
    "Recipe",
    "Schedule",
    "Selection",
    "TaskVector",
    "Teacher",
    "Training",
    "View",
    "dump_recipe",
    "family_of",
    "load_recipe",
    "recipe_names",
    "shortened",
]
