"""The sample sentences and scored pairs that come with the package, written for it."""

from __future__ import annotations

import importlib.resources
import os
from pathlib import Path

_ASSETS = Path(str(importlib.resources.files("opencse"))) / "assets" / "demo"


def corpus(name: str | Path) -> Path:
    """Return the path of a corpus; `demo` means the sample sentences, unless a file has this name."""
    return _ASSETS / "sentences.txt" if str(name) == "demo" and not os.path.exists(name) else Path(name)


def pairs(name: str | Path) -> Path:
    """Return the path of a file of scored pairs; `demo` means the sample pairs, unless a file has this name."""
    return _ASSETS / "pairs.tsv" if str(name) == "demo" and not os.path.isfile(name) else Path(name)
