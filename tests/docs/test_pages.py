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
import check  # noqa: E402
import names  # noqa: E402
import tables  # noqa: E402

WORDS = {"negation", "temperature"}


@pytest.mark.parametrize(
    ("code", "wrong"),
    [
        ("opencse.views.build_views", False),
        ("opencse.views.nothing_of_that_name", True),
        ("opencse.no_such_module", True),
        ("benchmarks/systems/systems.py", False),
        ("benchmarks/systems/gone.py", True),
        ("temperature = 0.05", False),
        ("temprature = 0.05", True),
        ("opencse train simcse corpus.txt --seeds 1,2", False),
        ("opencse train simcse corpus.txt --sedes 1,2", True),
        ("opencse trian simcse", True),
        ("opencse run simcse corpus.txt --set optimizer.lr=1e-5", False),
        ("opencse run simcse corpus.txt --set optimizer.rate=1e-5", True),
        ("make docs", False),
        ("make nothing", True),
    ],
)
def test_a_stale_name_is_found(code: str, wrong: bool) -> None:
    assert bool(list(names.inline(code, WORDS))) is wrong


def test_a_script_without_the_option_is_found() -> None:
    script = "python benchmarks/systems/systems.py C D -o OUT"
    assert list(names.command(f"{script} --cost")) == []
    assert list(names.command(f"{script} --coste"))


def test_figures_of_several_runs_become_mean_and_deviation() -> None:
    assert tables.shown([1.0, 2.0, 3.0], 1) == "2.0 ± 1.0"
    assert tables.shown([1.25], 2) == "1.25"
    assert tables.shown([None], 2) == "–"


def test_a_table_is_made_anew() -> None:
    page = "before\n<!-- table: parser -->\n| stale |\n<!-- end -->\nafter\n"
    assert "stale" not in tables.filled(page)
    assert "| fine tags | 93.7 | 93.8 |" in tables.filled(page)


def test_the_tables_of_the_pages_are_those_of_the_data() -> None:
    assert tables.main(write=False) == 0


def test_the_citation_has_the_version_of_the_package() -> None:
    assert f"version: {opencse.__version__}\n" in (DOCS.parent / "CITATION.cff").read_text(encoding="utf-8")


def test_a_request_to_another_host_is_found(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text('<a href="https://sbert.net">fine</a>', encoding="utf-8")
    assert check.requests(tmp_path) == []
    (tmp_path / "page.html").write_text('<script src="https://cdn.example/x.js"></script>', encoding="utf-8")
    (tmp_path / "site.css").write_text("@import url(//fonts.example/a.css);", encoding="utf-8")
    assert len(check.requests(tmp_path)) == 2
