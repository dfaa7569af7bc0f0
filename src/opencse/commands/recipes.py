"""`opencse recipes`: list the recipes that come with the package, or show one in full."""

from __future__ import annotations

import typer

from opencse.commands.options import ShowOptions
from opencse.encoder.names import FAMILIES
from opencse.foundation.result_table import Table, show
from opencse.foundation.toml_tables import unknown_name_error
from opencse.recipes import Recipe, dump_recipe, load_recipe, recipe_names
from opencse.recipes.published_settings import (
    PUBLISHED_FAMILIES,
    conformity,
    published_names,
    published_settings,
    values_of,
)


def list_recipes() -> Table:
    """Return the recipes that come with the package: title, paper and the text columns that they need."""
    rows = []
    for name in recipe_names():
        recipe = load_recipe(name)
        columns = [column + (" (optional)" if optional else "") for column, optional in recipe.columns.items()]
        rows.append((name, recipe.title, recipe.paper, ", ".join(columns)))
    return Table(("recipe", "title", "paper", "columns it needs"), rows)


def command(options: ShowOptions) -> None:
    """Print a recipe as it would be used, or its published settings."""
    family = options.family
    if family is not None and family not in (*FAMILIES, "other"):
        raise unknown_name_error("family", family, (*FAMILIES, "other"))
    if options.published:
        _show_published(options.name, family)
        return
    recipe = load_recipe(options.name, family=family or "other", variant=options.variant, overrides=options.overrides)
    typer.echo(f"# {recipe.name}, variant {recipe.variant}, settings for the family {recipe.family}")
    typer.echo(_with_sources(recipe))


def _with_sources(recipe: Recipe) -> str:
    """Return a resolved recipe as TOML; each value that was published says where, or what was published instead."""
    family = recipe.family if recipe.family in PUBLISHED_FAMILIES else PUBLISHED_FAMILIES[0]
    settings = published_settings(recipe.name) if recipe.name in published_names() else []
    entries = {entry.key: entry for entry in settings if entry.family == family and entry.source}
    names, lines, table, found = iter(recipe.terms), [], "", values_of(recipe)
    for line in dump_recipe(recipe).splitlines():
        if line.startswith("["):
            table = f"terms.{next(names).name}" if line == "[[terms]]" else line.strip("[]")
        entry = entries.get(f"{table}.{line.partition(' = ')[0]}")
        if entry is not None:
            values = (entry.published, entry.coded)
            other = "" if found[entry.key] in values else f"published: {entry.expected}; "
            line += f"  # {other}{entry.source}"
        lines.append(line)
    return "\n".join(lines) + "\n"


def _show_published(name: str, family: str | None) -> None:
    rows = []
    for entry, sound, faithful in conformity(name, PUBLISHED_FAMILIES if family is None else (family,)):
        values = ("" if value is None else str(value) for value in (entry.published, entry.coded, sound, faithful))
        rows.append((entry.key, entry.family, *values, "; ".join(filter(None, (entry.source, entry.why)))))
    none = () if rows else (f"nothing was published for {name} with the family {family}",)
    show(Table(("setting", "backbone", "published", "coded", "default", "faithful", "source"), rows, notes=none))
