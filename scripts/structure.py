"""Count what a newcomer meets: lines by kind, files, imports between them, circles, long files and functions.

    python scripts/structure.py [CHECKOUT]

A circle is a set of files, or of packages, that import each other, be it in a function or for type
checking only. `tests/test_architecture.py` keeps the layers of the packages, and fails on a circle
of files.
"""

from __future__ import annotations

import ast
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

Graph = dict[str, set[str]]


def main(checkout: Path) -> None:
    source = checkout / "src"
    modules = {name_of(path, source): path for path in sorted((source / "opencse").rglob("*.py"))}
    files = file_graph(modules)
    packages: Graph = {}
    for name, used in files.items():
        packages.setdefault(package_of(name), set()).update(package_of(other) for other in used)
    packages = {name: used - {name, "opencse"} for name, used in packages.items()}
    lines = {
        name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in modules.items()
    }
    functions = [found for name, path in modules.items() for found in functions_of(name, path)]
    flat = {
        name: len(list(path.parent.glob("*.py")))
        for name, path in modules.items()
        if path.name == "__init__.py"
    }
    largest_folder, longest_file = (
        max(flat, key=flat.__getitem__),
        max(lines, key=lines.__getitem__),
    )
    longest_function = max(functions, key=lambda found: found[1])
    print(f"files                 {len(modules)}")
    print(f"imports               {sum(map(len, files.values()))}")
    print(f"circles of files      {len(circles(files))}  {circles(files) or ''}")
    print(f"circles of packages   {len(circles(packages))}  {circles(packages) or ''}")
    print(f"lines                 {sum(lines.values())}")
    print(f"largest folder        {flat[largest_folder]} files ({largest_folder})")
    print(f"largest file          {lines[longest_file]} lines ({longest_file})")
    print(f"longest function      {longest_function[1]} lines ({longest_function[0]})")
    print(f"functions > 60 lines  {sum(length > 60 for _, length in functions)}")
    print(f"most parameters       {parameters_of(modules)}")
    print_lines(modules)


def file_graph(modules: dict[str, Path]) -> Graph:
    """Return the modules that each module imports: at its top, in its functions, or for type checking only."""
    return {name: set(imports(path, modules)) - {name} for name, path in modules.items()}


def name_of(path: Path, source: Path) -> str:
    """Return the dotted name of a module."""
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def package_of(name: str) -> str:
    """Return the package below `opencse` that a module belongs to."""
    return name.split(".")[1] if "." in name else name


def imports(path: Path, modules: dict[str, Path]) -> Iterator[str]:
    """Yield the modules of opencse that a file imports, anywhere in it."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if (
            isinstance(node, ast.ImportFrom)
            and node.module
            and node.module.split(".")[0] == "opencse"
        ):
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield whole if whole in modules else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)


def functions_of(name: str, path: Path) -> Iterator[tuple[str, int]]:
    """Yield the functions of a file with their lines of code: without signature and docstring."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = node.body[1:] if ast.get_docstring(node) else node.body
            length = (node.end_lineno or 0) - body[0].lineno + 1 if body else 0
            yield f"{name}.{node.name}", length


def parameters_of(modules: dict[str, Path]) -> str:
    """Return the longest lists of parameters: count and function."""
    lists = []
    for name, path in modules.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                given = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
                lists.append(
                    (sum(each.arg not in ("self", "cls") for each in given), f"{name}.{node.name}")
                )
    return ", ".join(f"{count} ({name})" for count, name in sorted(lists, reverse=True)[:5])


def print_lines(modules: dict[str, Path]) -> None:
    """Print the lines of each package by kind: code, docstrings, imports, comments, blank."""
    totals: dict[str, Counter[str]] = {}
    for name, path in modules.items():
        totals.setdefault(package_of(name), Counter()).update(line_kinds(path))
    totals["all"] = sum(totals.values(), Counter())
    kinds = ("code", "docstring", "import", "comment", "blank")
    print(f"\n{'package':14}{'lines':>8}" + "".join(f"{kind:>11}" for kind in kinds))
    for package, counts in totals.items():
        print(f"{package:14}{counts.total():8}" + "".join(f"{counts[kind]:11}" for kind in kinds))


def line_kinds(path: Path) -> Counter[str]:
    """Count the lines of a file by kind; a line with code and a comment is code."""
    lines = path.read_text(encoding="utf-8").splitlines()
    kinds = [
        "blank" if not line.strip() else "comment" if line.lstrip().startswith("#") else "code"
        for line in lines
    ]
    tree = ast.parse("\n".join(lines))
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            kinds[node.lineno - 1 : node.end_lineno] = ["import"] * (
                node.end_lineno - node.lineno + 1
            )
        body = getattr(node, "body", None)
        # Strings as statements: docstrings, and those below a constant or a field.
        for each in body if isinstance(body, list) else ():
            text = each.value if isinstance(each, ast.Expr) else None
            if isinstance(text, ast.Constant) and isinstance(text.value, str):
                kinds[each.lineno - 1 : each.end_lineno] = ["docstring"] * (
                    each.end_lineno - each.lineno + 1
                )
    return Counter(kinds)


def circles(graph: Graph) -> list[list[str]]:
    """Return the strongly connected sets of more than one node (Tarjan)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in sorted(graph.get(node, ())):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            members = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(members) > 1:
                found.append(sorted(members))

    for node in sorted(graph):
        if node not in index:
            visit(node)
    return found


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1])
