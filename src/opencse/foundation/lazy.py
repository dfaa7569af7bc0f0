"""Imports on first use, so that a command answers before it imports what only its work needs."""

from __future__ import annotations

import importlib
import sys
from collections import UserDict
from collections.abc import Callable
from typing import Any


def public_names(package: str, *places: str) -> Callable[[str], Any]:
    """Return the `__getattr__` of a package, which imports a public name when it is first used.

    Args:
        package: The package.
        *places: Where the names are: `module:Name`, or `.module:Name Other` for two in a module of the package.
    """
    modules = {
        name: module for module, _, names in (place.partition(":") for place in places) for name in names.split()
    }

    def find(name: str) -> Any:
        if name not in modules:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        value = getattr(importlib.import_module(modules[name], package), name)
        setattr(sys.modules[package], name, value)
        return value

    return find


class Kinds(UserDict[str, Any]):
    """Classes by their name in a recipe; one given as `module:Class` is imported when it is first looked up."""

    def __getitem__(self, kind: str) -> Any:
        """Return a class; KeyError if there is none."""
        found = self.data[kind]
        if isinstance(found, str):
            module, _, name = found.partition(":")
            found = self.data[kind] = getattr(importlib.import_module(module), name)
        return found
