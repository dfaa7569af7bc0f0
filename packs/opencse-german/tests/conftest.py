from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest

from opencse.text import languages


@pytest.fixture(autouse=True)
def _found_by_its_entry_point(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let opencse find the pack as `pyproject.toml` names it, installed or not."""
    project = tomllib.loads(
        (Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8")
    )["project"]

    def entry_points(group: str) -> list[EntryPoint]:
        return [
            EntryPoint(name, value, group) for name, value in project["entry-points"][group].items()
        ]

    monkeypatch.setattr(languages, "entry_points", entry_points)
    monkeypatch.setenv("OPENCSE_CACHE", str(tmp_path / "cache"))
    languages.language_packs.cache_clear()
    yield
    languages.language_packs.cache_clear()
