"""Checksums of the files of a folder, so that damage is noticed before the files are used."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import read_json

CHECKSUMS = "checksums.json"


def write_checksums(folder: Path) -> None:
    """Write `checksums.json` into a folder, with the SHA-256 of every file by name."""
    sums = {path.relative_to(folder).as_posix(): _sha256(path) for path in sorted(folder.rglob("*")) if path.is_file()}
    (folder / CHECKSUMS).write_text(json.dumps(sums, indent=1), encoding="utf-8")


def find_damage(folder: Path) -> str | None:
    """Return a description of a missing or changed file of a sealed folder; None if it is intact."""
    try:
        sums = read_json(folder / CHECKSUMS)
        return next((f"{name} was changed" for name, sum_ in sums.items() if _sha256(folder / name) != sum_), None)
    except OpencseError as error:
        return error.problem
    except (OSError, ValueError) as error:
        return str(error)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
