"""Imports on first use, so that a command does not load what it does not need."""

from __future__ import annotations

import ast
import importlib
import sys
from collections import UserDict
from collections.abc import Callable, Mapping
from typing import Any


def public_names(module: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module, which imports a name when it is first used.

    The names are those that the module imports `if TYPE_CHECKING`, so that they are listed once.
    """
    places: dict[str, str] = {}

    def find(name: str) -> Any:
        if not places:
            places.update(_typed_imports(module))
        if name not in places:
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        value = getattr(importlib.import_module(places[name]), name)
        setattr(sys.modules[module], name, value)
        return value

    return find


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


def names_of_classes(module: str, places: Mapping[str, str]) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module whose names are those of classes elsewhere.

    Args:
        module: Name of the module.
        places: `module:Class` strings, as in `Kinds`.
    """
    modules: dict[str, str] = {}
    for place in places.values():
        origin, _, name = place.partition(":")
        modules[name] = origin

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        return getattr(importlib.import_module(modules[name]), name)

    return find


class Kinds(UserDict[str, Any]):
    """Classes by their name in a recipe; a `module:Class` string is imported on first look-up."""

    def __getitem__(self, kind: str) -> Any:
        """Return a class; KeyError if there is none."""
        entry = self.data[kind]
        if isinstance(entry, str):
            module, _, name = entry.partition(":")
            entry = getattr(importlib.import_module(module), name)
            self.data[kind] = entry
        return entry
