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
        columns = [
            column + (" (optional)" if optional else "")
            for column, optional in recipe.columns.items()
        ]
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
    family = recipe.family if recipe.family in PUBLISHED_FAMILIES else PUBLISHED_FAMILIES[0]
    settings = published_settings(recipe.name) if recipe.name in published_names() else []
    entries = {entry.key: entry for entry in settings if entry.family == family and entry.source}
    names, lines, table, resolved = iter(recipe.losses), [], "", values_of(recipe)
    for line in dump_recipe(recipe).splitlines():
        if line.startswith("["):
            table = f"losses.{next(names).name}" if line == "[[losses]]" else line.strip("[]")
        entry = entries.get(f"{table}.{line.partition(' = ')[0]}")
        if entry is not None:
            values = (entry.published, entry.coded)
            published = "" if resolved[entry.key] in values else f"published: {entry.expected}; "
            line += f"  # {published}{entry.source}"
        lines.append(line)
    return "\n".join(lines) + "\n"


def _show_published(name: str, family: str | None) -> None:
    rows = []
    for entry, sound, faithful in conformity(
        name, PUBLISHED_FAMILIES if family is None else (family,)
    ):
        values = (
            "" if value is None else str(value)
            for value in (entry.published, entry.coded, sound, faithful)
        )
        rows.append(
            (entry.key, entry.family, *values, "; ".join(filter(None, (entry.source, entry.why))))
        )
    none = () if rows else (f"nothing was published for {name} with the family {family}",)
    show(
        Table(
            ("setting", "backbone", "published", "coded", "default", "faithful", "source"),
            rows,
            notes=none,
        )
    )


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
        return next(value for value in (self.ours, self.coded, self.published) if value is not None)


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
        values = {
            key: v.get(family) if isinstance(v, Mapping) else v
            for key, v in entry.items()
            if key != "of"
        }
        if any(values.get(key) is not None for key in ("published", "coded", "ours")):
            found.append(
                PublishedSetting(
                    family=family, **{key: v for key, v in values.items() if v is not None}
                )
            )
    return found


def values_of(recipe: Recipe) -> Mapping[str, Any]:
    """Return the settings of a resolved recipe by their keys; `ABSENT` where it has none."""
    table: Any = encode(recipe)
    table["losses"] = {
        loss.name: entry for loss, entry in zip(recipe.losses, table["losses"], strict=True)
    }
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
    values = {
        family: [
            values_of(load_recipe(name, family=family, variant=variant))
            for variant in ("sound", "faithful")
        ]
        for family in {entry.family for entry in entries}
    }
    for entry in entries:
        sound, faithful = (resolved[entry.key] for resolved in values[entry.family])
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
    return families, settings | {
        entry["key"]: entry | {"of": name} for entry in table.get("settings", ())
    }
