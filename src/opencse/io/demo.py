"""The sample sentences and scored pairs that come with the package, written for it."""

from __future__ import annotations

import importlib.resources
import os
from pathlib import Path

_ASSETS = Path(str(importlib.resources.files("opencse"))) / "assets" / "demo"


def corpus(name: str | Path) -> Path:
    """The path of a corpus; `demo` stands for the sample sentences, unless a file of that name is there."""
    return _ASSETS / "sentences.txt" if str(name) == "demo" and not os.path.exists(name) else Path(name)


def pairs(name: str | Path) -> Path:
    """The path of a file of scored pairs; `demo` stands for the sample pairs, unless a file of that name is there."""
    return _ASSETS / "pairs.tsv" if str(name) == "demo" and not os.path.isfile(name) else Path(name)
