"""The examples in docstrings run, and every loss and every kind of view has one."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import textwrap
from pathlib import Path

import pytest

import opencse.losses
import opencse.text
from opencse.losses import LOSSES
from opencse.recipes import load_recipe
from opencse.text.views.registry import VIEWS

PACKAGES = (opencse.losses, opencse.text)
MODULES = [m.name for p in PACKAGES for m in pkgutil.walk_packages(p.__path__, f"{p.__name__}.")]


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_run(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("OPENCSE_CACHE", str(tmp_path / "cache"))
    assert not doctest.testmod(importlib.import_module(name)).failed


def test_every_loss_and_every_kind_of_view_has_an_example() -> None:
    kinds = {**LOSSES, **VIEWS}
    assert [name for name, kind in kinds.items() if ">>>" not in (kind.__doc__ or "")] == []


@pytest.mark.parametrize("kind", VIEWS)
def test_the_example_of_a_kind_loads(kind: str, tmp_path: Path) -> None:
    docstring = inspect.getdoc(VIEWS[kind]) or ""
    assert "Example:\n" in docstring, kind
    example = textwrap.dedent(docstring.split("Example:\n")[1]).split(">>>")[0]
    path = tmp_path / "example.toml"
    path.write_text(f'extends = "simcse"\n{example}', encoding="utf-8")
    assert kind in {spec.kind for spec in load_recipe(path).build.values()}
