"""What the pages print is true: recipes resolve, links lead somewhere, tables and names are current."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

import opencse
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
    if page == "compose.md":
        assert len(block.splitlines()) <= 10


@pytest.mark.parametrize("name", recipe_names())
def test_every_recipe_is_in_the_contents(name: str) -> None:
    contents = (DOCS.parent / "CONTENTS.md").read_text(encoding="utf-8")
    assert f"`{name}`" in contents


@pytest.mark.parametrize("name", ["CONTENTS.md", "README.md", "CONTRIBUTING.md", "SECURITY.md", "benchmarks/README.md"])
def test_links_of_pages_outside_the_site_lead_somewhere(name: str) -> None:
    page = DOCS.parent / name
    for link in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
        assert link.startswith("https://") or (page.parent / link).exists(), link


SYSTEMS = tomllib.loads((DOCS.parent / "benchmarks" / "systems" / "systems.toml").read_text(encoding="utf-8"))
ABLATIONS = SYSTEMS["ablations"]


@pytest.mark.parametrize("label", ABLATIONS)
def test_an_ablation_of_the_table_of_systems_changes_its_recipe(label: str) -> None:
    name, settings = ABLATIONS[label]["recipe"], ABLATIONS[label]["set"]
    whole = SYSTEMS["settings"].get(name, [])
    for family in ("mini-mlm", "bert-base"):
        changed = load_recipe(name, family=family, overrides=[*whole, *settings])
        assert changed != load_recipe(name, family=family, overrides=whole)


sys.path.insert(0, str(DOCS / "_site"))
import tables  # noqa: E402


def test_the_tables_of_the_pages_are_those_of_the_data() -> None:
    assert tables.main(write=False) == 0


def test_the_citation_has_the_version_of_the_package() -> None:
    assert f"version: {opencse.__version__}\n" in (DOCS.parent / "CITATION.cff").read_text(encoding="utf-8")


def test_links_of_notebooks_lead_somewhere() -> None:
    for path in sorted((DOCS.parent / "examples" / "notebooks").glob("*.ipynb")):
        for link in re.findall(r"\]\((\.\./[^)#]+)", path.read_text(encoding="utf-8")):
            assert (path.parent / link).exists(), link
