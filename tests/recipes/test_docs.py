"""The recipes that the documentation prints are recipes."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

from opencse.recipes import load_recipe, recipe_names

DOCS = Path(__file__).resolve().parents[2] / "docs"
PRINTED = [
    (page.name, block)
    for page in sorted(DOCS.rglob("*.md"))
    for block in re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    if "extends" in block
]


@pytest.mark.parametrize(("page", "block"), PRINTED)
def test_a_printed_recipe_resolves(tmp_path, page: str, block: str) -> None:
    (tmp_path / "mine.toml").write_text(block, encoding="utf-8")
    assert load_recipe(tmp_path / "mine.toml").terms
    if page == "composing.md":
        assert len(block.splitlines()) <= 10


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_is_in_the_contents(name: str) -> None:
    contents = (DOCS.parent / "CONTENTS.md").read_text(encoding="utf-8")
    assert f"`{name}`" in contents


def test_links_of_the_contents_lead_somewhere() -> None:
    for page in (DOCS.parent / "CONTENTS.md", *(DOCS / "systems").glob("*.md")):
        for link in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
            assert (page.parent / link).exists(), f"{page.name}: {link}"


ABLATIONS = tomllib.loads((DOCS.parent / "benchmarks" / "systems" / "systems.toml").read_text(encoding="utf-8"))[
    "ablations"
]


@pytest.mark.parametrize("label", ABLATIONS)
def test_an_ablation_of_the_table_of_systems_changes_its_recipe(label: str) -> None:
    name, settings = ABLATIONS[label]["recipe"], ABLATIONS[label]["set"]
    for family in ("mini-mlm", "bert-base"):
        assert load_recipe(name, family=family, overrides=settings) != load_recipe(name, family=family)
