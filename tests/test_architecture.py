"""The floors that docs/architecture.md shows: each package imports only packages below it."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "scripts"))

from structure import circles, file_graph, name_of

SOURCE = Path(__file__).parents[1] / "src"
FLOORS = (
    ("foundation", "version"),
    ("losses", "encoder"),
    ("text",),
    ("recipes",),
    ("training", "evaluation"),
    ("debias",),
    ("papers",),
    ("commands",),
    ("__main__",),
)
FLOOR = {package: floor for floor, packages in enumerate(FLOORS) for package in packages}


def modules() -> Iterator[tuple[Path, str]]:
    for path in sorted((SOURCE / "opencse").rglob("*.py")):
        name = path.relative_to(SOURCE / "opencse").with_suffix("").parts
        if name != ("__init__",):
            yield path, name[0]


def imported(path: Path) -> Iterator[str]:
    """The packages of opencse that a file imports, at its top or inside a function."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "opencse":
            yield from (alias.name for alias in node.names if not alias.name.startswith("__"))
        elif (
            isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("opencse.")
        ):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (
                alias.name.split(".")[1]
                for alias in node.names
                if alias.name.startswith("opencse.")
            )


def test_every_package_has_a_floor() -> None:
    assert {package for _, package in modules()} == set(FLOOR)


def test_packages_import_only_packages_of_lower_floors() -> None:
    wrong = [
        f"{path.relative_to(SOURCE)} ({package}) imports {other}"
        for path, package in modules()
        for other in imported(path)
        if other != package and FLOOR[other] >= FLOOR[package]
    ]
    assert not wrong, "\n".join(wrong)


def test_no_circle_of_files() -> None:
    files = {name_of(path, SOURCE): path for path in sorted((SOURCE / "opencse").rglob("*.py"))}
    assert not circles(file_graph(files))


def test_a_circle_is_found_in_functions_and_in_imports_for_type_checking(tmp_path) -> None:
    (tmp_path / "opencse").mkdir()
    content = {
        "one": "def f():\n    from opencse.two import g\n",
        "two": "from opencse import three\n",
        "three": "if TYPE_CHECKING:\n    from opencse.one import f\n",
        "four": "from opencse.one import f\n",
    }
    files = {f"opencse.{name}": tmp_path / "opencse" / f"{name}.py" for name in content}
    for name, text in content.items():
        files[f"opencse.{name}"].write_text(text)
    assert circles(file_graph(files)) == [["opencse.one", "opencse.three", "opencse.two"]]


# Within text: a part imports only parts to its left, or its own; the registry of views imports all
# of them.
TEXT = (
    ("", "syntax", "surface", "views"),
    ("english", "generated", "perturbed", "spans"),
    ("mined", "languages"),
)


def test_parts_of_text_import_only_parts_of_lower_layers() -> None:
    floor = {part: number for number, parts in enumerate(TEXT) for part in parts}
    wrong = []
    for path in sorted((SOURCE / "opencse" / "text").rglob("*.py")):
        first = path.relative_to(SOURCE / "opencse" / "text").parts[0].removesuffix(".py")
        part = first if first in floor else ""
        if path.stem == "registry":
            continue
        for line in re.findall(r"from opencse\.text\.(\w+)", path.read_text(encoding="utf-8")):
            other = line if line in floor else ""
            if floor[other] > floor[part] or (floor[other] == floor[part] > 0 and other != part):
                wrong.append(f"{path.relative_to(SOURCE)} imports {line}")
    assert not wrong, "\n".join(wrong)


def test_the_architecture_page_shows_these_floors() -> None:
    page = next(path for path in (SOURCE.parent / "docs").rglob("architecture.md"))
    rows = re.findall(
        r"^\| (\d+) \| ([^|]+) \|", page.read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    shown = [tuple(re.findall(r"`(\w+)`", cells)) for _, cells in rows]
    assert [set(floor) for floor in shown] == [set(floor) for floor in FLOORS]
