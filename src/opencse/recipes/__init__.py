"""Recipes: training systems as short TOML files that read like the papers' formulas."""

from opencse.encoder.names import FAMILIES, family_of
from opencse.recipes.load import dump_recipe, load_recipe, recipe_names, shortened
from opencse.recipes.schema import Encoder, FirstStage, Recipe, Teacher, ViewSettings
from opencse.recipes.settings import Block, CorpusSettings, MixturePart, Optimizer, Schedule, Selection, Training

__all__ = [
    "FAMILIES",
    "Block",
    "CorpusSettings",
    "Encoder",
    "FirstStage",
    "MixturePart",
    "Optimizer",
    "Recipe",
    "Schedule",
    "Selection",
    "Teacher",
    "Training",
    "ViewSettings",
    "dump_recipe",
    "family_of",
    "load_recipe",
    "recipe_names",
    "shortened",
]
