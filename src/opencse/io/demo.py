"""Sample sentences and scored pairs that were written for the package and come with it."""

from __future__ import annotations

import importlib.resources
import os
from pathlib import Path

_ASSETS = Path(str(importlib.resources.files("opencse"))) / "assets" / "demo"


def corpus(name: str | Path) -> Path:
    """Return the path of a corpus: the sample sentences for `demo`, unless a file has this name."""
    return _ASSETS / "sentences.txt" if str(name) == "demo" and not os.path.exists(name) else Path(name)


def pairs(name: str | Path) -> Path:
    """Return the path of a file of scored pairs: the sample pairs for `demo`, unless a file has this name."""
    return _ASSETS / "pairs.tsv" if str(name) == "demo" and not os.path.isfile(name) else Path(name)
