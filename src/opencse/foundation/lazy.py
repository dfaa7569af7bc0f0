"""Imports on first use, so that a command does not load what it does not need."""

from __future__ import annotations

import ast
import importlib
import sys
from collections import UserDict
from collections.abc import Callable, Iterator, Mapping
from importlib.metadata import entry_points
from typing import Any

from opencse.foundation.errors import OpencseError


def lazy_names(module: str, classes: Mapping[str, str] | None = None) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module, which imports a name when it is first used.

    Args:
        module: Name of the module.
        classes: `module:Class` strings, as in `Kinds`, whose classes are the names. By default the
            names are those that the module imports `if TYPE_CHECKING`, so that they are listed once.
    """
    places: dict[str, str] = {}

    def find(name: str) -> Any:
        if not places:
            if classes is None:
                places.update(_typed_imports(module))
            else:
                places.update(_places_of(classes))
        if name not in places:
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        value = getattr(importlib.import_module(places[name]), name)
        # From now on it is an ordinary attribute, and this function is not asked again.
        setattr(sys.modules[module], name, value)
        return value

    return find


def _places_of(classes: Mapping[str, str]) -> dict[str, str]:
    """Return the names of classes, each with the module it comes from."""
    places = {}
    for place in classes.values():
        origin, _, name = place.partition(":")
        places[name] = origin
    return places


def _typed_imports(module: str) -> dict[str, str]:
    """Return the names that a module imports inside an `if`, each with the module it comes from."""
    loader: Any = sys.modules[module].__loader__
    tree = ast.parse(loader.get_source(module))
    places = {}
    for block in tree.body:
        if not isinstance(block, ast.If):
            continue
        for statement in block.body:
            if isinstance(statement, ast.ImportFrom):
                for alias in statement.names:
                    places[alias.name] = str(statement.module)
    return places


class Kinds(UserDict[str, Any]):
    """Classes by their name in a recipe; a `module:Class` string is imported on first look-up.

    Code from outside the package adds its own: `LOSSES["my_loss"] = MyLoss`, or an installed package
    names them in its entry points, which are read when they are first needed.

    Args:
        classes: The classes, or `module:Class` strings, by name.
        group: The group of entry points; empty for none.
    """

    def __init__(self, classes: Mapping[str, Any], group: str = "") -> None:
        super().__init__(classes)
        self.group = group
        self._own = set(classes)
        self._read_entry_points = not group

    def __getitem__(self, kind: str) -> Any:
        """Return a class; KeyError if there is none.

        Raises:
            OpencseError: A plug-in cannot be imported.
        """
        if kind not in self.data:
            self._add_plugins()
        entry = self.data[kind]
        if isinstance(entry, str):
            entry = self._imported(kind, entry)
            self.data[kind] = entry
        return entry

    def __contains__(self, kind: object) -> bool:
        """Return whether there is such a kind."""
        if kind not in self.data:
            self._add_plugins()
        return kind in self.data

    def __iter__(self) -> Iterator[str]:
        """Yield the names of all kinds."""
        self._add_plugins()
        return iter(self.data)

    def __len__(self) -> int:
        """Return the number of kinds."""
        self._add_plugins()
        return len(self.data)

    def _add_plugins(self) -> None:
        """Add what installed packages name; nothing is imported, and no kind is replaced."""
        if self._read_entry_points:
            return
        self._read_entry_points = True
        for entry in entry_points(group=self.group):
            self.data.setdefault(entry.name, entry.value)

    def _imported(self, kind: str, place: str) -> Any:
        module, _, name = place.partition(":")
        try:
            return getattr(importlib.import_module(module), name)
        except (Exception, SystemExit) as error:
            if kind in self._own:
                raise
            raise OpencseError(
                f"the plug-in {kind} ({place}) cannot be imported ({type(error).__name__}: {error})",
                "Update the package that brings it, or uninstall it.",
            ) from error
