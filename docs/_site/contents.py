"""From each recipe to its terms and text views, and from each term to its code, its tests and its transcription."""

from __future__ import annotations

import re
from pathlib import Path

from opencse.objectives import TERMS
from opencse.recipes import load_recipe, recipe_names
from opencse.views import CONSTRUCTORS

ROOT = Path(__file__).parents[2]


def code(names: list[str]) -> str:
    """Return names as code, or a dash."""
    return ", ".join(f"`{name}`" for name in names) or "–"


def recipe_rows() -> list[str]:
    """Return a row for each recipe: its terms and what builds its text."""
    rows = ["| recipe | terms | text views |", "|---|---|---|"]
    for name in recipe_names():
        recipe = load_recipe(name)
        kinds = list(dict.fromkeys(term.kind for term in recipe.terms))
        built = list(dict.fromkeys(spec.kind for spec in recipe.build.values()))
        rows.append(f"| [`{name}`](recipes/{name}.md) | {code(kinds)} | {code(built)} |")
    return rows


def source(cls: type) -> str:
    """Return the file of a class, below the repository's root."""
    return f"src/{cls.__module__.replace('.', '/')}.py"


def tests_of(cls: type, folder: Path) -> list[str]:
    """Return the test files that use a class."""
    files = sorted(folder.rglob("test_*.py"))
    return [str(file.relative_to(ROOT)) for file in files if re.search(rf"\b{cls.__name__}\b", file.read_text("utf-8"))]


def transcriptions(tests: list[str]) -> list[str]:
    """Return the literal transcriptions of papers that test files import."""
    found: dict[str, None] = {}
    for test in tests:
        text = (ROOT / test).read_text("utf-8")
        for line in re.findall(r"^(?:from|import) (?:tests\.)?reference.*$", text, re.MULTILINE):
            for word in re.findall(r"\w+", line):
                if (ROOT / "tests" / "reference" / f"{word}.py").exists():
                    found[f"tests/reference/{word}.py"] = None
    return list(found)


def term_rows() -> list[str]:
    """Return a row for each term."""
    rows = ["| term | code | tests | transcription |", "|---|---|---|---|"]
    for kind, cls in TERMS.items():
        tests = tests_of(cls, ROOT / "tests" / "objectives")
        rows.append(f"| `{kind}` | `{source(cls)}` | {code(tests)} | {code(transcriptions(tests))} |")
    return rows


def view_rows() -> list[str]:
    """Return a row for each text view."""
    rows = ["| text view | code |", "|---|---|"]
    return [*rows, *(f"| `{kind}` | `{source(cls)}` |" for kind, cls in CONSTRUCTORS.items())]


def page() -> str:
    """Return the page."""
    return "\n".join(
        [
            "# From a system to its code",
            "",
            "Made from the recipes and the code. The tests of a term hold it to a literal transcription of its paper.",
            "",
            *recipe_rows(),
            "",
            *term_rows(),
            "",
            *view_rows(),
            "",
        ]
    )
