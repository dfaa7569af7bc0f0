"""Finding, merging and writing recipes.

A recipe's tables are merged in this order, later ones winning: the recipe that it `extends`, the
file itself, its `[faithful]` table (if that variant is asked for), its `[with.NAME]` tables (for
what the user brings, such as paraphrases), its `[for.FAMILY]` table (for the family of the
backbone), and the user's `--set key=value`.
"""

from __future__ import annotations

import copy
import importlib.resources
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass, replace
from pathlib import Path
from typing import Any, get_type_hints

from opencse.foundation.errors import OpencseError
from opencse.foundation.plugins import RECIPES, ways_to_add
from opencse.foundation.progress import note
from opencse.foundation.reading import as_items, read_text
from opencse.foundation.toml_tables import (
    TomlTable,
    check_fields,
    check_keys,
    decode,
    encode,
    format_toml,
    merge_tables,
    nested_table,
    parse_override,
    parse_toml,
    unknown_name_error,
)
from opencse.losses import LOSSES
from opencse.recipes.schema import Recipe
from opencse.text.generated.likely_words import Insertion, Substitution, WordSubstitution
from opencse.text.views.registry import VIEWS

# The tables that are merged into the others on some condition.
_LAYERS = ("faithful", "for", "with")
_KEYS = set(Recipe.__dataclass_fields__) - {"name", "variant", "family"}
_SHIPPED = importlib.resources.files("opencse.recipes") / "systems"


def recipe_names() -> list[str]:
    """Return the names of the recipes that come with the package."""
    return sorted(
        f.name.removesuffix(".toml") for f in _SHIPPED.iterdir() if f.name.endswith(".toml")
    )


def load_recipe(
    name: str | Path,
    *,
    family: str = "other",
    variant: str = "sound",
    having: Sequence[str] = (),
    overrides: Sequence[str] | Mapping[str, Any] = (),
) -> Recipe:
    """Read, merge and check a recipe.

    Args:
        name: The name of a shipped recipe (`simcse`) or the path of a TOML file.
        family: The backbone's family (`opencse.encoder.names`), whose published settings are
            applied.
        variant: `sound` (the default) or `faithful`, the system as published, quirks included.
        having: Which of the recipe's `[with.NAME]` tables apply.
        overrides: `key=value` strings as on the command line (`optimizer.lr=1e-5`,
            `losses.info_nce.temperature=0.1`), or a mapping of such keys to values.

    Raises:
        OpencseError: There is no such recipe, or it has an unknown key, a wrong type or an
            impossible value.
    """
    file = RecipeFile.read(name)
    recipe = file.resolve(family=family, variant=variant, having=having, overrides=overrides)
    origin = _RecipeOrigin(file, variant, tuple(having), copy.deepcopy(overrides))
    # No field of the recipe: two recipes with the same settings are equal, and a recipe that was
    # changed with `dataclasses.replace` loses it.
    object.__setattr__(recipe, "_origin", origin)
    return recipe


@dataclass(frozen=True)
class _RecipeOrigin:
    """How a `Recipe` was loaded, so that it can be loaded again for a family of backbones.

    Attributes:
        file: Its file.
        variant: As for `load_recipe`.
        having: As for `load_recipe`.
        overrides: As for `load_recipe`.
    """

    file: RecipeFile
    variant: str
    having: tuple[str, ...]
    overrides: Sequence[str] | Mapping[str, Any]


def adapt_recipe(
    recipe: Recipe,
    *,
    family: str,
    variant: str = "sound",
    overrides: Sequence[str] | Mapping[str, Any] = (),
) -> Recipe:
    """Return a recipe object with the settings of a backbone's family and with overrides.

    A recipe that `load_recipe` made without a family gets the published settings of this family, as
    if it had been given by its name.

    Args:
        recipe: The recipe.
        family: The backbone's family.
        variant: The variant that the user asked for; `sound`, the default, accepts both.
        overrides: As for `load_recipe`.

    Raises:
        OpencseError: The recipe has another variant, or an override is wrong.
    """
    if variant == "faithful" and recipe.variant != "faithful":
        raise OpencseError(
            f"the recipe object {recipe.name} is the variant 'sound', but variant='faithful' was given",
            f'Load it with opencse.load_recipe("{recipe.name}", variant="faithful").',
        )
    if family not in ("other", recipe.family):
        recipe = _with_family(recipe, family)
    if not overrides:
        return recipe
    return override_recipe(recipe, overrides)


def _with_family(recipe: Recipe, family: str) -> Recipe:
    """Return a recipe with the settings of a family, unless the user chose those of another.

    A note reports it: such a choice is allowed, but should not go unseen.
    """
    fix = f'Load it with opencse.load_recipe("{recipe.name}", family="{family}").'
    if recipe.family != "other":
        note(
            f"the recipe object {recipe.name} keeps its settings for {recipe.family}, but the backbone is of "
            f"the family {family}. {fix}"
        )
        return recipe
    origin: _RecipeOrigin | None = getattr(recipe, "_origin", None)
    if origin is None:
        # Changed in Python: which of its settings are meant cannot be known.
        note(
            f"the recipe object {recipe.name} is used without the published settings for {family}. {fix}"
        )
        return recipe
    return origin.file.resolve(
        family=family, variant=origin.variant, having=origin.having, overrides=origin.overrides
    )


def override_recipe(recipe: Recipe, overrides: Sequence[str] | Mapping[str, Any]) -> Recipe:
    """Return a resolved recipe with some values overridden; `overrides` is as for `load_recipe`.

    Raises:
        OpencseError: A key is unknown or a value is impossible.
    """
    table = encode(recipe)
    known = {key: table.pop(key) for key in ("name", "variant", "family")}
    table = _overridden(table, overrides)
    return _decode_recipe(table, recipe.name, known)


def _overridden(table: TomlTable, overrides: Sequence[str] | Mapping[str, Any]) -> TomlTable:
    """Return the table of a recipe with the user's overrides merged into it."""
    if isinstance(overrides, Mapping):
        pairs = list(overrides.items())
    else:
        pairs = [parse_override(text) for text in as_items(overrides)]
    given: set[str] = set()
    for key, value in pairs:
        override = nested_table(key, value)
        refuse_former_names(override, f"--set {key}")
        table = merge_tables(table, override, f"--set {key}")
        given.update(override.get("training", {}))
    if "epochs" in given and "max_steps" not in given:
        # A recipe's own number of steps would win over the epochs that the user asks for.
        table = dict(table)
        table["training"] = {
            key: value for key, value in table["training"].items() if key != "max_steps"
        }
    return table


@dataclass(frozen=True)
class RecipeFile:
    """The file of a recipe with all that it extends, read once.

    Attributes:
        name: Name of the recipe.
        label: Its file in messages.
        table: Its tables, without those that apply on a condition.
        layers: The tables that apply on a condition: `faithful`, `for` and `with`.
    """

    name: str
    label: str
    table: TomlTable
    layers: dict[str, TomlTable]

    @classmethod
    def read(cls, name: str | Path) -> RecipeFile:
        """Read a recipe by its name or path.

        Raises:
            OpencseError: There is no such recipe, or its file is no valid TOML.
        """
        table, label, sources = _merged(name)
        layers = {key: _tables(table.pop(key, {}), f"{label}: {key}") for key in _LAYERS}
        for key in ("for", "with"):
            for layer, settings in layers[key].items():
                _tables(settings, f"{label}: {key}.{layer}")
        # A key of an earlier version is told of wherever it stands, whatever will be merged.
        groups = [layers["for"], layers["with"]]
        groups.append(_tables(layers["faithful"].get("for", {}), f"{label}: faithful.for"))
        refuse_former_names(table, label)
        refuse_former_names(layers["faithful"], label)
        for group in groups:
            for settings in group.values():
                refuse_former_names(settings, label)
        return cls(sources[0], label, table, layers)

    def resolve(
        self,
        *,
        family: str,
        variant: str,
        overrides: Sequence[str] | Mapping[str, Any],
        having: Sequence[str] = (),
    ) -> Recipe:
        """Merge the tables that apply, and check the recipe; the arguments are those of `load_recipe`."""
        # Copies, because merging fills tables in place, and a file is resolved for several families.
        table = copy.deepcopy(self.table)
        label = self.label
        faithful, families, extras = copy.deepcopy([self.layers[key] for key in _LAYERS])
        if variant not in ("sound", "faithful"):
            raise unknown_name_error("variant", variant, ["sound", "faithful"], label)
        if variant == "faithful":
            families = merge_tables(
                families, _tables(faithful.pop("for", {}), f"{label}: faithful.for"), label
            )
            table = merge_tables(table, faithful, f"{label}: faithful")
        for extra in having:
            if extra not in extras:
                raise OpencseError(
                    f"{label} has no use for {extra}",
                    f"It can use {', '.join(extras)}." if extras else "Leave it out.",
                )
            table = merge_tables(table, extras[extra], f"{label}: with.{extra}")
        table = merge_tables(table, families.get(family, {}), f"{label}: for.{family}")
        table = _overridden(table, overrides)
        if variant == "faithful":
            # It tells how the default differs from this variant.
            table.pop("differs", None)
        return _decode_recipe(
            table, label, {"name": self.name, "variant": variant, "family": family}
        )

    def check(self, overrides: Sequence[str]) -> None:
        """Check the kinds of losses and views and the names of overridden settings.

        No loss or view is imported.
        Nothing is refused that `resolve` would accept for some backbone and corpus, whose tables
        are not merged yet.

        Raises:
            OpencseError: As `resolve` would raise it.
        """
        table = copy.deepcopy(self.table)
        for text in as_items(overrides):
            key, value = parse_override(text)
            refuse_former_names(nested_table(key, value), f"--set {key}")
            # Deeper keys belong to losses and views, whose classes are not imported here.
            first, _, second = key.partition(".")
            check_keys({first: value}, _KEYS, self.label)
            section = get_type_hints(Recipe)[first]
            single = second and "." not in second and not isinstance(value, Mapping)
            if single and isinstance(section, type) and is_dataclass(section):
                check_fields(section, {second: value}, f"{self.label}: {first}")
            if first == "build":
                table = merge_tables(table, nested_table(key, value), f"--set {key}")
        losses = table.get("losses")
        if isinstance(losses, list):
            for i, loss in enumerate(losses):
                _check_kind(LOSSES, loss, f"{self.label}: losses[{i}]")
        build = table.get("build")
        if isinstance(build, Mapping):
            for column, view in build.items():
                _check_kind(VIEWS, view, f"{self.label}: build.{column}")

    def named_columns(self, overrides: Sequence[str], variant: str = "sound") -> list[str]:
        """Return the text columns that the losses name, from the tables alone, without importing a loss.

        A loss may read further views by default; `Recipe.columns` has all of them. Tables for a
        family of backbones, which is not known yet, do not change what is read.
        """
        table = self.table
        if variant == "faithful":
            table = merge_tables(table, self.layers["faithful"], self.label)
        for text in overrides:
            key, value = parse_override(text)
            table = merge_tables(table, nested_table(key, value), f"--set {key}")
        views = table.get("views")
        losses = table.get("losses")
        if not isinstance(views, Mapping) or not isinstance(losses, list):
            return []
        # Which fields of a loss name views is known to its class alone, so every string counts that
        # is the name of a view.
        named: set[str] = set()
        for loss in losses:
            if isinstance(loss, Mapping) and loss.get("weight") != 0:
                named.update(_strings(loss))
        columns: list[str] = []
        for view, settings in views.items():
            column = settings.get("text", "text") if isinstance(settings, Mapping) else "text"
            if view in named and column not in columns:
                columns.append(column)
        return columns


def _strings(value: object) -> Iterator[str]:
    """Yield the strings in nested tables and lists."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from _strings(item)


def check_columns(
    recipe: str, needed: Iterable[str], present: Collection[str], corpus: str
) -> None:
    """Check that a corpus has the columns that a recipe trains on.

    Args:
        recipe: Name of the recipe.
        needed: The columns that its losses read.
        present: The columns of the corpus.
        corpus: Name of the corpus, for the message.

    Raises:
        OpencseError: A column is missing, and training builds none.
    """
    missing = [column for column in needed if column not in present]
    if not missing:
        return
    quoted = [f"'{column}'" for column in missing]
    raise OpencseError(
        f"{corpus} has no column {' and '.join(quoted)}, which {recipe} trains on",
        f"`opencse run {recipe} {corpus}` builds what is missing and trains; `opencse build` only builds.",
    )


def refuse_former_names(table: Mapping[str, Any], where: str) -> None:
    """Refuse the key `terms`, as recipes and saved runs of earlier versions have it.

    Raises:
        OpencseError: The table has the key; the message names the present one.
    """
    if "terms" in table:
        raise OpencseError(
            f"{where}: 'terms' is now called 'losses'",
            "Write [[losses]], [losses.NAME] and --set losses.NAME.KEY=VALUE.",
        )


def _tables(value: object, where: str) -> TomlTable:
    if not isinstance(value, dict):
        raise OpencseError(f"{where}: expected a table, found {value!r}")
    return value


def dump_recipe(recipe: Recipe) -> str:
    """Return the resolved recipe as TOML, which `load_recipe` reads back to an equal recipe."""
    table = encode(recipe)
    return format_toml(
        {k: v for k, v in table.items() if k not in ("name", "family", "variant") and v != {}}
    )


def _merged(name: str | Path) -> tuple[TomlTable, str, list[str]]:
    table, label = _read(name)
    chain = [Path(str(name)).stem]
    while "extends" in table:
        parent = table.pop("extends")
        if not isinstance(parent, str):
            raise OpencseError(f"{label}: extends: expected the name of a recipe, found {parent!r}")
        source: str | Path = parent
        # A path is relative to the file that names it; anything else is a recipe's name.
        if str(name).endswith(".toml") and parent.endswith(".toml"):
            source = Path(name).parent / parent
        if Path(source).stem in chain:
            raise OpencseError(
                f"{label}: extends: '{parent}' extends itself ({' → '.join([*chain, parent])})"
            )
        chain.append(Path(source).stem)
        base, base_label = _read(source)
        # What a parent states about itself does not hold for the child.
        for key in ("title", "paper", "differs", "published", "faithful"):
            base.pop(key, None)
        table = merge_tables(base, table, label if not table.get("extends") else base_label)
    return table, label, chain


def _read(name: str | Path) -> tuple[TomlTable, str]:
    path = Path(name)
    if path.suffix == ".toml":
        # It is false for any string; Path.exists raises for some.
        if not os.path.exists(path):
            raise OpencseError(
                f"{path}: no such recipe file", f"Shipped recipes: {', '.join(recipe_names())}."
            )
        return parse_toml(read_text(path), str(path)), str(path)
    if str(name) not in recipe_names():
        if str(name) not in RECIPES:
            known = [*recipe_names(), *RECIPES]
            unknown = unknown_name_error("recipe", str(name), known)
            own = ways_to_add(RECIPES.group)
            raise OpencseError(unknown.problem, f"{unknown.remedy} {own}")
        file = Path(RECIPES[str(name)])
        return parse_toml(read_text(file), str(file)), str(file)
    label = f"{name}.toml"
    return parse_toml((_SHIPPED / label).read_text(encoding="utf-8"), label), label


def _decode_recipe(table: TomlTable, label: str, known: TomlTable) -> Recipe:
    losses = table.get("losses", [])
    if not isinstance(losses, list):
        raise OpencseError(f"{label}: losses: expected a list of tables, [[losses]]")
    decoded = []
    for i, entry in enumerate(losses):
        loss = _decode_kind(LOSSES, entry, f"{label}: losses[{i}]")
        # A weight of 0 leaves a loss out, as an ablation: --set losses.NAME.weight=0
        if loss.weight != 0:
            decoded.append(loss)
    table["losses"] = tuple(decoded)
    build = table.get("build")
    if build:
        if not isinstance(build, Mapping):
            raise OpencseError(f"{label}: build: expected a table for each column")
        views = {}
        for column, view in build.items():
            views[column] = _decode_kind(VIEWS, view, f"{label}: build.{column}")
        table["build"] = views
    check_keys(table, _KEYS, label)
    return decode(Recipe, table | known, label)


def _check_kind(kinds: Mapping[str, type], table: object, where: str) -> None:
    """Check that the kind of a table, and of those in it, is known, if they have one."""
    if not isinstance(table, Mapping):
        return
    kind = table.get("kind")
    if not isinstance(kind, str):
        return
    if kind not in kinds:
        unknown = unknown_name_error("kind", kind, kinds, where)
        own = ways_to_add(getattr(kinds, "group", ""))
        raise OpencseError(unknown.problem, f"{unknown.remedy} {own}")
    for key, value in table.items():
        _check_kind(kinds, value, f"{where}.{key}")


def _decode_kind(kinds: Mapping[str, type], table: object, where: str) -> Any:
    if not isinstance(table, Mapping) or not isinstance(table.get("kind"), str):
        raise OpencseError(
            f"{where}: the key 'kind' is missing", f"Allowed: {', '.join(sorted(kinds))}."
        )
    _check_kind(kinds, table, where)
    fields = dict(table)
    kind = fields.pop("kind")
    for key, value in fields.items():
        # One view may be the source of another.
        if isinstance(value, Mapping) and "kind" in value:
            fields[key] = _decode_kind(kinds, value, f"{where}.{key}")
    found = kinds[kind]
    if kinds is LOSSES:
        # Here, because it imports PyTorch, which the checks of a command do without.
        from opencse.losses.base import check_is_loss

        check_is_loss(found, kind)
    elif not is_dataclass(found):
        raise OpencseError(
            f"the view '{kind}' ({getattr(found, '__name__', found)}) is no dataclass",
            "Derive its class from opencse.text.views.registry.View, below @dataclass(frozen=True, kw_only=True).",
        )
    if hasattr(found, "check_class"):
        found.check_class()
    return decode(found, fields, where)


STEPS = 20
SENTENCES = 400


def shortened(recipe: Recipe) -> Recipe:
    """Return the recipe with few steps and few sentences.

    The model that comes out has learned next to nothing; the point is to see every stage work
    within a minute or two.

    Args:
        recipe: Any resolved recipe.
    """
    corpus = recipe.corpus
    # The parts of a mixture keep their proportions; the largest gets SENTENCES rows.
    largest = max((part.rows for part in corpus.parts.values()), default=0)
    parts = {}
    for name, part in corpus.parts.items():
        rows = 0
        if part.rows:
            # Rounded up, so that no part disappears.
            rows = -(-part.rows * SENTENCES // largest)
        parts[name] = replace(part, rows=rows)
    corpus = replace(
        corpus,
        rows=min(corpus.rows or SENTENCES, SENTENCES),
        opposites=min(corpus.opposites, SENTENCES),
        parts=parts,
    )
    training = recipe.training
    training = replace(training, most_steps=min(training.most_steps or STEPS, STEPS))
    if training.max_steps is not None:
        training = replace(training, max_steps=min(training.max_steps, STEPS))
    selection = replace(recipe.selection, every=min(recipe.selection.every, STEPS))
    return replace(recipe, corpus=corpus, training=training, selection=selection)


def stand_ins(recipe: Recipe, backbone: str) -> list[str]:
    """Return the settings with which the backbone takes the place of other models, which would not fit it.

    These are the generators of losses, the teachers, and the masked language models that write
    columns.

    Args:
        recipe: The recipe with the settings of a family that the backbone does not belong to.
        backbone: A folder or name.
    """
    settings = []
    for loss in recipe.losses:
        if hasattr(loss, "generator"):
            settings.append(f"losses.{loss.name}.generator=backbone")
    for name in recipe.teachers:
        settings.append(f"teachers.{name}.model=backbone")
    for name, spec in recipe.build.items():
        if isinstance(spec, Insertion | WordSubstitution | Substitution):
            # Views are built before there is a backbone in training, so it is known by its name.
            settings.append(f"build.{name}.model='{backbone}'")
    return settings
