"""Settings of papers and their public code, compared with those of a recipe (`published/NAME.toml`).

A table holds one entry for each setting. `published` is the value of the paper or its README, `coded` that of code
and scripts where it differs or the paper is silent; either is one value for all families of backbones, or one for
each. The recipe's `faithful` variant has what was coded, else what was published. `ours` is what it has instead, with
the reason in `why`, which likewise is for all families or for each. The value "absent" stands for a setting that a
recipe leaves to the backbone or does not have.
"""

from __future__ import annotations

import importlib.resources
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from opencse.foundation.decode import encode
from opencse.foundation.errors import OpencseError
from opencse.recipes.load import load_recipe, recipe_names
from opencse.recipes.schema import Recipe

PUBLISHED_FAMILIES = ("bert-base", "bert-large", "roberta-base", "roberta-large")
ABSENT = "absent"
_SHIPPED = importlib.resources.files("opencse.recipes") / "published"
_VALUES = ("published", "coded", "ours")


@dataclass(frozen=True, kw_only=True)
class PublishedSetting:
    """One setting of one system with one family of backbones.

    Attributes:
        key: As after `--set`; terms go by their names.
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
        return next(value for value in (self.ours, self.coded, self.published) if value is not None)


def published_names() -> list[str]:
    """Return the names of the recipes that have a table of published settings."""
    return [name for name in recipe_names() if (_SHIPPED / f"{name}.toml").is_file()]


def published_settings(name: str) -> list[PublishedSetting]:
    """Read the table of a recipe.

    Args:
        name: The recipe's name.

    Returns:
        One entry for each setting and each family for which anything is known, in the order of the file, inherited
        settings first.

    Raises:
        OpencseError: The recipe is of no published system.
    """
    if name not in published_names():
        raise OpencseError(f"{name}: no settings were published for this recipe", f"Known: {published_names()}.")
    families, settings = _merged(name)
    for entry in settings.values():
        if entry["of"] != name and "source" in entry:
            entry["source"] = f"{entry['of']}: {entry['source']}"
    return [entry for family in families for entry in _of_family(settings, family)]


def setting_of(recipe: Recipe, key: str) -> Any:
    """Return the value of a setting in a resolved recipe; `ABSENT` where it has none."""
    table: Any = encode(recipe)
    table["terms"] = {term.name: entry for term, entry in zip(recipe.terms, table["terms"], strict=True)}
    for part in key.split("."):
        if not isinstance(table, Mapping) or part not in table:
            return ABSENT
        table = table[part]
    return table


def conformity(
    name: str, families: tuple[str, ...] = PUBLISHED_FAMILIES
) -> Iterator[tuple[PublishedSetting, Any, Any]]:
    """Yield each published setting with its value in the recipe by default and in the `faithful` variant."""
    entries = [entry for entry in published_settings(name) if entry.family in families]
    variants = ("sound", "faithful")
    recipes = {(f, v): load_recipe(name, family=f, variant=v) for f in {e.family for e in entries} for v in variants}
    for entry in entries:
        sound, faithful = (setting_of(recipes[entry.family, variant], entry.key) for variant in variants)
        yield entry, sound, faithful


def _merged(name: str) -> tuple[tuple[str, ...], dict[str, dict[str, Any]]]:
    """Return the families of a table and its entries by key, with those that it inherits."""
    table = tomllib.loads((_SHIPPED / f"{name}.toml").read_text(encoding="utf-8"))
    parents = table.get("extends", [])
    families: tuple[str, ...] = PUBLISHED_FAMILIES
    settings: dict[str, dict[str, Any]] = {}
    for parent in [parents] if isinstance(parents, str) else parents:
        inherited, more = _merged(parent)
        families, settings = tuple(f for f in families if f in inherited), settings | more
    families = tuple(table.get("families", families))
    return families, settings | {entry["key"]: entry | {"of": name} for entry in table.get("settings", ())}


def _of_family(settings: Mapping[str, Mapping[str, Any]], family: str) -> Iterator[PublishedSetting]:
    for key, entry in settings.items():
        values = {name: _value(entry.get(name), family) for name in _VALUES}
        if any(value is not None for value in values.values()):
            yield PublishedSetting(
                key=key,
                family=family,
                source=entry.get("source", ""),
                why=_value(entry.get("why", ""), family) or "",
                **values,
            )


def _value(value: Any, family: str) -> Any:
    return value.get(family) if isinstance(value, Mapping) else value
