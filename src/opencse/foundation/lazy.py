"""Imports on first use, so that a command answers before it imports what only its work needs."""

from __future__ import annotations

import ast
import importlib
import sys
from collections import UserDict
from collections.abc import Callable
from typing import Any


def public_names(module: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a module, which imports a name when it is first used.

    The names are those that the module imports `if TYPE_CHECKING`, so that they are listed once.
    """
    places: dict[str, str] = {}

    def find(name: str) -> Any:
        if not places:
            loader: Any = sys.modules[module].__loader__
            blocks = [
                node.body
                for node in ast.parse(loader.get_source(module)).body
                if isinstance(node, ast.If)
            ]
            imports = [
                statement
                for body in blocks
                for statement in body
                if isinstance(statement, ast.ImportFrom)
            ]
            places.update(
                {
                    alias.name: str(statement.module)
                    for statement in imports
                    for alias in statement.names
                }
            )
        if name not in places:
            raise AttributeError(f"module '{module}' has no attribute '{name}'")
        value = getattr(importlib.import_module(places[name]), name)
        setattr(sys.modules[module], name, value)
        return value

    return find


class Kinds(UserDict[str, Any]):
    """Classes by their name in a recipe; one given as `module:Class` is imported when it is first looked up."""

    def __getitem__(self, kind: str) -> Any:
        """Return a class; KeyError if there is none."""
        entry = self.data[kind]
        if isinstance(entry, str):
            module, _, name = entry.partition(":")
            entry = self.data[kind] = getattr(importlib.import_module(module), name)
        return entry
