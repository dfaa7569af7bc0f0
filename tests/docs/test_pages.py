"""What the pages print is true: links lead somewhere, tables are those of the data, recipes resolve."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

import opencse
from opencse.recipes import load_recipe

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [
    *ROOT.glob("*.md"),
    *DOCS.rglob("*.md"),
    *(ROOT / "benchmarks").rglob("*.md"),
    *(ROOT / "examples").rglob("*.ipynb"),
]
MADE = DOCS / "reference" / "generated"  # by `make docs`
LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([\w-]+))?\)")

sys.path.insert(0, str(DOCS / "_site"))
import figures  # noqa: E402
import tables  # noqa: E402


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page's headings, as the site and GitHub make them."""
    headings = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def broken_links(page: Path) -> list[str]:
    """Return the links of a page that lead nowhere."""
    found = []
    for link, anchor in LINK.findall(page.read_text(encoding="utf-8")):
        target = (page.parent / link).resolve() if link else page
        # Of pages that only a build makes, a reader of the repository sees nothing.
        exists = target.exists() and MADE not in target.parents
        if not exists or (anchor and anchor not in anchors(target)):
            found.append(f"{page.relative_to(ROOT)}: {link}#{anchor}")
    return found


def test_links_lead_somewhere() -> None:
    assert [link for page in PAGES if MADE not in page.parents for link in broken_links(page)] == []


def test_tables_are_those_of_the_data() -> None:
    assert tables.main(write=False) == 0


def test_figures_are_those_of_the_data() -> None:
    assert figures.main(write=False) == 0


def test_the_citation_has_the_version_of_the_package() -> None:
    assert f"version: {opencse.__version__}\n" in (ROOT / "CITATION.cff").read_text(
        encoding="utf-8"
    )


PRINTED = [
    (page.name, block)
    for page in sorted(DOCS.rglob("*.md"))
    if MADE not in page.parents
    for block in re.findall(r"```toml\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)
    if "extends" in block
]


@pytest.mark.parametrize(("page", "block"), PRINTED)
def test_a_printed_recipe_resolves(tmp_path, page: str, block: str) -> None:
    (tmp_path / "mine.toml").write_text(block, encoding="utf-8")
    assert load_recipe(tmp_path / "mine.toml").losses


SYSTEMS = tomllib.loads(
    (ROOT / "benchmarks" / "systems" / "systems.toml").read_text(encoding="utf-8")
)
ABLATIONS = SYSTEMS["ablations"]


@pytest.mark.parametrize("label", ABLATIONS)
def test_an_ablation_of_the_table_of_systems_changes_its_recipe(label: str) -> None:
    name, settings = ABLATIONS[label]["recipe"], ABLATIONS[label]["set"]
    whole = [setting for table in ("settings", "mixed") for setting in SYSTEMS[table].get(name, [])]
    for family in ("mini-mlm", "bert-base"):
        changed = load_recipe(name, family=family, overrides=[*whole, *settings])
        assert changed != load_recipe(name, family=family, overrides=whole)
