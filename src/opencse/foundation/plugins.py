"""What code from outside the package registers, and how it is imported.

Losses are in `opencse.losses.LOSSES`, views in `opencse.text.views.registry.VIEWS`, and tasks in
`opencse.evaluation.suites.TASKS`.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from opencse.foundation.errors import OpencseError
from opencse.foundation.lazy import Kinds
from opencse.foundation.reading import error_reason

RECIPES = Kinds({}, "opencse.recipes")
"""Recipes by name: each the path of a TOML file."""

CALLBACKS = Kinds({}, "opencse.callbacks")
"""Callbacks by name: a class, or a function without arguments that returns a callback."""

TRACKERS = Kinds({}, "opencse.trackers")
"""Experiment trackers by name: each a subclass of accelerate's `GeneralTracker`.

It is made as accelerate makes its own: `Tracker(project)`, or `Tracker(project, folder)` if its
`requires_logging_directory` is true.
"""

MODULES = Kinds({})
"""Classes of modules by their type in a model's `modules.json`, each as `module:Class`.

The class comes from the installed package: a copy of its file in a model's folder is never run. It
must load its settings from `config.json`; those of a transformer inside it, if any, are under
`transformer`.
"""


def saved_type(module_type: str) -> str:
    """Return the type under which a registered module is saved: its file in the folder, and its class.

    So the folder loads without opencse, with `trust_remote_code`.

    Example:
        >>> saved_type("opencse.debias.meaning_block.MeaningBlock")
        'meaning_block.MeaningBlock'
    """
    return ".".join(module_type.split(".")[-2:])


def import_plugin(name: str) -> None:
    """Import a module that registers losses, views, tasks, callbacks, recipes or trackers.

    Args:
        name: A module, which may be in the current folder, or the path of a `.py` file.

    Raises:
        OpencseError: It cannot be imported.
    """
    path = Path(name)
    folder = Path.cwd()
    module = name
    if path.suffix == ".py":
        folder = path.resolve().parent
        module = path.stem
    if str(folder) not in sys.path:
        # Last, so that no file in the folder hides a module of a library.
        sys.path.append(str(folder))
    try:
        importlib.import_module(module)
    except OpencseError:
        raise
    except (Exception, SystemExit) as error:
        raise OpencseError(
            f"--import {name} failed ({type(error).__name__}: {error_reason(error)})",
            "Give a module that Python can import, or the path of a .py file.",
        ) from error


def ways_to_add(group: str) -> str:
    """Return the two ways to add a kind from outside the package, for the error about an unknown one."""
    return (
        f"Your own: --import MODULE (in Python, import it), or an entry point in the group {group}."
    )
