"""The example in the docstring of every kind is a recipe entry that loads."""

from __future__ import annotations

import inspect
import textwrap
from pathlib import Path

import pytest

from opencse.recipes import load_recipe
from opencse.text.views.registry import CONSTRUCTORS


@pytest.mark.parametrize("kind", CONSTRUCTORS)
def test_the_example_of_a_kind_loads(kind: str, tmp_path: Path) -> None:
    docstring = inspect.getdoc(CONSTRUCTORS[kind]) or ""
    assert "Example:\n" in docstring, kind
    example = textwrap.dedent(docstring.split("Example:\n")[1]).split(">>>")[0]
    path = tmp_path / "example.toml"
    path.write_text(f'extends = "simcse"\n{example}', encoding="utf-8")
    assert kind in {spec.kind for spec in load_recipe(path).build.values()}
