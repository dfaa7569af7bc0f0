"""Sample sentences and scored pairs that were written for the package and come with it."""

from __future__ import annotations

import os
from pathlib import Path

from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import ASSETS

_ASSETS = ASSETS / "demo"


def corpus(name: str | Path) -> Path:
    """Return the path of a corpus: the sample sentences for `demo`, unless a file has this name."""
    return _ASSETS / "sentences.txt" if str(name) == "demo" and not os.path.exists(name) else _named(name)


def pairs(name: str | Path) -> Path:
    """Return the path of a file of scored pairs: the sample pairs for `demo`, unless a file has this name."""
    return _ASSETS / "pairs.tsv" if str(name) == "demo" and not os.path.isfile(name) else _named(name)


def _named(name: str | Path) -> Path:
    """Return a path, unless it is the empty one, which would be the current folder."""
    if not str(name).strip():
        raise OpencseError("the path is empty", "Name a file or a folder; `.` is the current folder.")
    return Path(name)
