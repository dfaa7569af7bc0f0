"""From each recipe to its losses and text views, from each loss to its code and tests, and where papers and code differ.

python docs/_site/contents.py --write    # write CONTENTS.md again; the site has the same page
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Callable
from pathlib import Path

from opencse.commands.recipes import published_names, published_settings
from opencse.losses import LOSSES
from opencse.recipes import load_recipe, recipe_names
from opencse.text.views.registry import VIEWS

ROOT = Path(__file__).parents[2]


Link = Callable[[str], str]


def code(names: list[str]) -> str:
    """Return names as code, or a dash."""
    return ", ".join(f"`{name}`" for name in names) or "–"


def linked(path: str) -> str:
    """Return a link from the root of the repository."""
    return f"[{Path(path).name}]({path})"


def plain(path: str) -> str:
    """Return a path as code, for the site, which does not hold the sources."""
    return f"`{path}`"


def recipe_rows(link: Link) -> list[str]:
    """Return a row for each recipe: its losses and what builds its text."""
    rows = ["| recipe | file | losses | text views |", "|---|---|---|---|"]
    for name in recipe_names():
        recipe = load_recipe(name)
        kinds = list(dict.fromkeys(loss.kind for loss in recipe.losses))
        built = list(dict.fromkeys(spec.kind for spec in recipe.build.values()))
        file = f"src/opencse/recipes/systems/{name}.toml"
        rows.append(f"| `{name}` | {link(file)} | {code(kinds)} | {code(built)} |")
    return rows


def source(cls: type) -> str:
    """Return the file of a class, below the repository's root."""
    return f"src/{cls.__module__.replace('.', '/')}.py"


def tests_of(cls: type, folder: Path) -> list[str]:
    """Return the test files that use a class."""
    files = sorted(folder.rglob("test_*.py"))
    return [
        str(file.relative_to(ROOT))
        for file in files
        if re.search(rf"\b{cls.__name__}\b", file.read_text("utf-8"))
    ]


def transcriptions(cls: type, folder: Path) -> list[str]:
    """Return the literal transcriptions of papers that tests use beside a class, directly or by their own helpers."""
    paths: dict[str, None] = {}
    for file in sorted(folder.glob("*.py")):
        tree = ast.parse(file.read_text("utf-8"))
        imported = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
        modules = {alias.name: node.module or "" for node in imported for alias in node.names}
        # Each case of a list stands for itself.
        parts = [
            part
            for node in tree.body
            for part in getattr(getattr(node, "value", None), "elts", [node])
        ]
        used = {
            part: {node.id for node in ast.walk(part) if isinstance(node, ast.Name)}
            for part in parts
        }
        defined = {part.name: used[part] for part in parts if isinstance(part, ast.FunctionDef)}
        makers = {
            name
            for name, names in defined.items()
            if cls.__name__ in names and not name.startswith("test_")
        }
        beside = [names for names in used.values() if cls.__name__ in names or makers & names]
        names = {
            name for part in beside for each in part for name in (each, *defined.get(each, ()))
        }
        literal = sorted({modules[name] for name in names & modules.keys() - {"cosine"}})
        literal = [module for module in literal if module.startswith("tests.reference.")]
        paths |= dict.fromkeys(f"{module.replace('.', '/')}.py" for module in literal)
    return list(paths)


def loss_rows(link: Link) -> list[str]:
    """Return a row for each loss."""
    rows = ["| loss | code | tests | transcription |", "|---|---|---|---|"]
    for kind, cls in LOSSES.items():
        folder = ROOT / "tests" / "losses"
        both = tests_of(cls, folder), transcriptions(cls, folder)
        checked, literal = (", ".join(map(link, paths)) or "–" for paths in both)
        rows.append(f"| `{kind}` | {link(source(cls))} | {checked} | {literal} |")
    return rows


def view_rows(link: Link) -> list[str]:
    """Return a row for each text view."""
    rows = ["| text view | code |", "|---|---|"]
    return [*rows, *(f"| `{kind}` | {link(source(cls))} |" for kind, cls in VIEWS.items())]


def disagreement_rows() -> list[str]:
    """Return a row for each setting that a paper prints otherwise than its authors' code has it."""
    rows = ["| recipe | setting | families | printed | in the code |", "|---|---|---|---|---|"]
    found: dict[tuple[str, ...], list[str]] = {}
    for name in published_names():
        for each in published_settings(name):
            own = not each.source.startswith(
                tuple(f"{other}: " for other in (*published_names(), "substitution"))
            )
            if own and None not in (each.published, each.coded) and each.published != each.coded:
                cells = (
                    f"`{name}`",
                    f"`{each.key}`",
                    f"`{json.dumps(each.published)}`",
                    f"`{json.dumps(each.coded)}`",
                )
                found.setdefault(cells, []).append(each.family)
    for (name, key, printed, coded), families in found.items():
        rows.append(f"| {name} | {key} | {', '.join(families)} | {printed} | {coded} |")
    return rows


def page(link: Link = plain) -> str:
    """Return the page."""
    lead = "Made by `make pages` from the code. The tests of a loss compare it with a literal transcription"
    parts = [
        ["# From a system to its code", "", f"{lead} of its paper.", ""],
        [*recipe_rows(link), ""],
        [*loss_rows(link), ""],
        [*view_rows(link), ""],
        ["## Where a paper and its authors' code disagree", ""],
        [
            "`faithful` has what is in the code, from which the numbers came; `--set` takes what is printed.",
            "",
        ],
        disagreement_rows(),
    ]
    return "\n".join(line for part in parts for line in part) + "\n"


def main(write: bool) -> int:
    """Write CONTENTS.md, or say that it differs from the code."""
    path, text = ROOT / "CONTENTS.md", page(linked)
    if write:
        path.write_text(text, encoding="utf-8")
    elif path.read_text(encoding="utf-8") != text:
        print("CONTENTS.md differs from the code: make pages")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main("--write" in sys.argv[1:]))
