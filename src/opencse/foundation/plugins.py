"""What plug-ins register: here the modules of models; losses are in `opencse.losses.LOSSES`."""

from __future__ import annotations

from opencse.foundation.lazy import Kinds

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
