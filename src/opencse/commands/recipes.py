"""`opencse recipes`: list recipes, show one in full, or the settings of its paper (`published/NAME.toml`) next to it.

A table holds one entry for each setting. `published` is the value of the paper or its README,
`coded` that of code and scripts where it differs or the paper is silent; either is one value for
all families of backbones, or one for each. The recipe's `faithful` variant has what was coded, else
what was published. `ours` is what it has instead, with the reason in `why`, which likewise is for
all families or for each. The value "absent" stands for a setting that a recipe leaves to the
backbone or does not have.
"""

from __future__ import annotations

import importlib.resources
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from opencse.commands.options import ShowOptions
from opencse.encoder.names import FAMILIES
from opencse.foundation.errors import OpencseError
from opencse.foundation.plugins import RECIPES
from opencse.foundation.result_table import Table, show
from opencse.foundation.terminal import print_text
from opencse.foundation.toml_tables import encode, unknown_name_error
from opencse.recipes import Recipe, dump_recipe, load_recipe, recipe_names


def list_recipes() -> Table:
    """Return the recipes of the package and of installed plug-ins: title, paper and the text columns that they need."""
    rows = []
    for name in [*recipe_names(), *RECIPES]:
        recipe = load_recipe(name)
        columns = []
        for column, optional in recipe.columns.items():
            columns.append(f"{column} (optional)" if optional else column)
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
    recipe = load_recipe(
        options.name, family=family or "other", variant=options.variant, overrides=options.overrides
    )
    print_text(
        f"# {recipe.name}, variant {recipe.variant}, settings for the family {recipe.family}"
    )
    print_text(_with_sources(recipe))


def _with_sources(recipe: Recipe) -> str:
    """Return a resolved recipe as TOML; each published value names its source, or what was published instead."""
    entries = _sourced_settings(recipe)
    resolved = values_of(recipe)
    lines = []
    table = ""
    losses = iter(recipe.losses)
    for line in dump_recipe(recipe).splitlines():
        if line == "[[losses]]":
            # In settings, a loss is found by its name, not by its place in the list.
            table = f"losses.{next(losses).name}"
        elif line.startswith("["):
            table = line.strip("[]")
        name, _, _ = line.partition(" = ")
        entry = entries.get(f"{table}.{name}")
        if entry is not None:
            note = entry.source
            if resolved[entry.key] not in (entry.published, entry.coded):
                note = f"published: {entry.expected}; {note}"
            line += f"  # {note}"
        lines.append(line)
    return "\n".join(lines) + "\n"


def _sourced_settings(recipe: Recipe) -> dict[str, PublishedSetting]:
    """Return the published settings of a recipe that have a source, by key, for its family."""
    if recipe.name not in published_names():
        return {}
    # A backbone of another family is compared with the paper's first.
    family = recipe.family
    if family not in PUBLISHED_FAMILIES:
        family = PUBLISHED_FAMILIES[0]
    entries = {}
    for entry in published_settings(recipe.name):
        if entry.family == family and entry.source:
            entries[entry.key] = entry
    return entries


def _show_published(name: str, family: str | None) -> None:
    """Print the settings of paper and code, next to those of both variants of the recipe."""
    families = PUBLISHED_FAMILIES if family is None else (family,)
    rows = []
    for entry, sound, faithful in conformity(name, families):
        row = [entry.key, entry.family]
        for value in (entry.published, entry.coded, sound, faithful):
            row.append("" if value is None else str(value))
        reasons = [text for text in (entry.source, entry.why) if text]
        row.append("; ".join(reasons))
        rows.append(row)
    notes = []
    if not rows:
        notes.append(f"nothing was published for {name} with the family {family}")
    heads = ("setting", "backbone", "published", "coded", "default", "faithful", "source")
    show(Table(heads, rows, notes=notes))


PUBLISHED_FAMILIES = ("bert-base", "bert-large", "roberta-base", "roberta-large")
ABSENT = "absent"
_SHIPPED = importlib.resources.files("opencse.recipes") / "published"


@dataclass(frozen=True, kw_only=True)
class PublishedSetting:
    """One setting of one system with one family of backbones.

    Attributes:
        key: As after `--set`; losses go by their names.
        family: The family of backbones.
        published: By paper or README; None where they do not say.
        coded: By code or scripts; None where they say nothing else.
        ours: What `faithful` has instead of either; None where it has one of them.
        source: Where published and coded stand.
        why: Why `faithful` has something else.
    """

    key: str
    family: str
    published: Any = None
    coded: Any = None
    ours: Any = None
    source: str = ""
    why: str = ""

    @property
    def expected(self) -> Any:
        """The value in the `faithful` variant."""
        if self.ours is not None:
            return self.ours
        if self.coded is not None:
            return self.coded
        return self.published


def published_names() -> list[str]:
    """Return the names of the recipes that have a table of published settings."""
    return [name for name in recipe_names() if (_SHIPPED / f"{name}.toml").is_file()]


def published_settings(name: str) -> list[PublishedSetting]:
    """Read the table of a recipe.

    Args:
        name: The recipe's name.

    Returns:
        One entry for each setting and each family for which anything is known, in the order of the
        file, inherited settings first.

    Raises:
        OpencseError: The recipe is of no published system.
    """
    if name not in published_names():
        raise OpencseError(
            f"{name}: no settings were published for this recipe", f"Known: {published_names()}."
        )
    families, settings = _merged(name)
    for entry in settings.values():
        if entry["of"] != name and "source" in entry:
            entry["source"] = f"{entry['of']}: {entry['source']}"
    found = []
    for family, entry in product(families, settings.values()):
        values = {}
        for key, value in entry.items():
            # One value for all families, or one for each.
            own = value.get(family) if isinstance(value, Mapping) else value
            if key != "of" and own is not None:
                values[key] = own
        if values.keys() & {"published", "coded", "ours"}:
            found.append(PublishedSetting(family=family, **values))
    return found


def values_of(recipe: Recipe) -> Mapping[str, Any]:
    """Return the settings of a resolved recipe by their keys; `ABSENT` where it has none."""
    table: Any = encode(recipe)
    names = [loss.name for loss in recipe.losses]
    table["losses"] = dict(zip(names, table["losses"], strict=True))
    return defaultdict(lambda: ABSENT, _by_key(table))


def _by_key(table: Mapping[str, Any], place: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in table.items():
        yield place + key, value
        if isinstance(value, Mapping):
            yield from _by_key(value, f"{place}{key}.")


def conformity(
    name: str, families: tuple[str, ...] = PUBLISHED_FAMILIES
) -> Iterator[tuple[PublishedSetting, Any, Any]]:
    """Yield each published setting with its value in the recipe by default and in the `faithful` variant."""
    entries = [entry for entry in published_settings(name) if entry.family in families]
    sound = {}
    faithful = {}
    for family in {entry.family for entry in entries}:
        sound[family] = values_of(load_recipe(name, family=family))
        faithful[family] = values_of(load_recipe(name, family=family, variant="faithful"))
    for entry in entries:
        yield entry, sound[entry.family][entry.key], faithful[entry.family][entry.key]


def _merged(name: str) -> tuple[tuple[str, ...], dict[str, dict[str, Any]]]:
    """Return the families of a table and its entries by key, with those that it inherits."""
    table = tomllib.loads((_SHIPPED / f"{name}.toml").read_text(encoding="utf-8"))
    parents = table.get("extends", [])
    if isinstance(parents, str):
        parents = [parents]
    families: tuple[str, ...] = PUBLISHED_FAMILIES
    settings: dict[str, dict[str, Any]] = {}
    for parent in parents:
        inherited, more = _merged(parent)
        families = tuple(family for family in families if family in inherited)
        settings |= more
    for entry in table.get("settings", ()):
        settings[entry["key"]] = entry | {"of": name}
    return tuple(table.get("families", families)), settings
