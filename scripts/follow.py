"""Follow one argument through the code: at how many files it stops, and how often it climbs back up.

    python scripts/follow.py opencse.commands.run:run:corpus [CHECKOUT]

The argument is followed from call to call in the order of the source, branches one after another
and each function once. A *stop* is a call into another file; a return is none, for whoever reads
the caller is there already. A *climb* is a call into a package further up: of a function, or a
closure over the argument, that a caller handed down. A package stands above all packages that it
imports. Stops in the package where the walk starts are counted apart.

Followed are the argument itself, under whatever name, its `path`, an attribute of its name, and a
path or an object of its kind that a function makes of it (`rows = prepare_rows(recipe, corpus)`).
Methods of objects are not followed: who reads `corpus.texts()` need not open the class.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from structure import circles, imports, name_of, package_of

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Target:
    """A function of a file; or, as `closure`, a function within it."""

    module: str
    name: str
    closure: bool = False


@dataclass
class Module:
    """The functions of a file by qualified name, its classes, and where its imported names come from."""

    functions: dict[str, Function] = field(default_factory=dict)
    classes: set[str] = field(default_factory=set)
    origins: dict[str, tuple[str, str]] = field(default_factory=dict)


def read(path: Path) -> Module:
    """Return what a file defines and imports."""
    module, tree = Module(), ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, Function):
            module.functions[node.name] = node
        elif isinstance(node, ast.ClassDef):
            module.classes.add(node.name)
            module.functions |= {
                f"{node.name}.{each.name}": each for each in node.body if isinstance(each, Function)
            }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            module.origins |= {
                alias.asname or alias.name: (node.module, alias.name) for alias in node.names
            }
    return module


def floors(files: dict[str, Path]) -> dict[str, int]:
    """Return for each package the length of the longest chain of imports below it; a circle counts as one package."""
    graph: dict[str, set[str]] = {}
    for name, path in files.items():
        used = {package_of(other) for other in imports(path, files)}
        graph.setdefault(package_of(name), set()).update(used - {package_of(name)})
    joined = {member: min(circle) for circle in circles(graph) for member in circle}
    below: dict[str, set[str]] = {}
    for package, used in graph.items():
        home = joined.get(package, package)
        below.setdefault(home, set()).update({joined.get(other, other) for other in used} - {home})

    def depth(package: str) -> int:
        return 1 + max(map(depth, below.get(package, ())), default=0)

    return {package: depth(joined.get(package, package)) for package in graph}


@dataclass(frozen=True)
class Stop:
    """A call into another file."""

    module: str
    caller: str


class Walk:
    """The files that an argument visits, in order."""

    def __init__(self, modules: dict[str, Module], argument: str) -> None:
        self.modules = modules
        self.argument = argument
        self.stops: list[Stop] = []
        self._seen: set[tuple[str, str, frozenset[str]]] = set()

    def enter(
        self, module: str, name: str, names: frozenset[str], handed: Mapping[str, Target]
    ) -> None:
        """Visit a function that has the argument under some names, and what it calls with it.

        Args:
            module: The function's file.
            name: The function.
            names: Its parameters that hold the argument.
            handed: Its parameters that hold a function, and that function.
        """
        if (module, name, names) in self._seen:
            return
        self._seen.add((module, name, names))
        known = set(names)
        function = self.modules[module].functions[name]
        closures = {
            node.name: Target(module, name, closure=True)
            for node in ast.walk(function)
            if isinstance(node, Function) and node is not function and known & names_in(node)
        }
        for node in in_order(function):
            if isinstance(node, ast.Call):
                self._call(Target(module, name), node, known, {**handed, **closures})
            elif isinstance(node, ast.Assign) and self._is(node.value, known, module, name):
                known |= {target.id for target in node.targets if isinstance(target, ast.Name)}

    def _is(self, node: ast.expr, known: set[str], module: str, caller: str) -> bool:
        """Whether an expression is the argument, or a path or an object of its kind that is made of it."""
        match node:
            case ast.Name(id=name):
                return name in known
            case ast.Attribute(value=value, attr=name):
                return name == self.argument or (
                    name == "path" and self._is(value, known, module, caller)
                )
            case ast.Call(func=func, args=args, keywords=keywords):
                given = any(
                    self._is(each, known, module, caller)
                    for each in (*args, *(each.value for each in keywords))
                )
                return given and self._keeps(module, caller, func)
            case ast.IfExp(body=first, orelse=second) | ast.BoolOp(values=[first, second]):
                return self._is(first, known, module, caller) or self._is(
                    second, known, module, caller
                )
        return False

    def _keeps(self, module: str, caller: str, func: ast.expr) -> bool:
        """Whether a function returns a path, or an object whose class has the argument's name."""
        if isinstance(func, ast.Name) and func.id in ("Path", "str"):
            return True
        found = self._target(module, caller, func)
        returns = self.modules[found[0]].functions[found[1]].returns if found else None
        return isinstance(returns, ast.Name) and returns.id in ("Path", self.argument.capitalize())

    def _call(
        self, here: Target, call: ast.Call, known: set[str], handed: Mapping[str, Target]
    ) -> None:
        target = self._function(here, call.func, handed)
        if target is None:
            return
        if target.closure:
            self._stop(target.module, here.module)
            return
        parameters = self.modules[target.module].functions[target.name].args
        positional = [each.arg for each in (*parameters.posonlyargs, *parameters.args)]
        positional = (
            positional[1:]
            if "." in target.name and positional[:1] in (["self"], ["cls"])
            else positional
        )
        values = dict(zip(positional, call.args, strict=False))
        values |= {each.arg: each.value for each in call.keywords if each.arg}
        names = {
            name for name, value in values.items() if self._is(value, known, here.module, here.name)
        }
        functions = {name: self._function(here, value, handed) for name, value in values.items()}
        down = {name: function for name, function in functions.items() if function is not None}
        if names or any(function.closure for function in down.values()):
            self._stop(target.module, here.module)
            self.enter(target.module, target.name, frozenset(names), down)

    def _stop(self, module: str, caller: str) -> None:
        if module != caller:
            self.stops.append(Stop(module, caller))

    def _function(
        self, here: Target, func: ast.expr, handed: Mapping[str, Target]
    ) -> Target | None:
        """Return the function that an expression names: handed down, a closure, or one of a module."""
        if isinstance(func, ast.Name) and func.id in handed:
            return handed[func.id]
        target = self._target(here.module, here.name, func)
        return None if target is None else Target(*target)

    def _target(self, module: str, caller: str, func: ast.expr) -> tuple[str, str] | None:
        """Return module and qualified name of the function that a call reaches, if the source tells."""
        if isinstance(func, ast.Name):
            return self._named(module, func.id)
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
            if func.value.id in ("self", "cls") and "." in caller:
                name = f"{caller.split('.')[0]}.{func.attr}"
                return (module, name) if name in self.modules[module].functions else None
            origin = ".".join(self.modules[module].origins.get(func.value.id, ()))
            return self._named(origin, func.attr) if origin in self.modules else None
        return None

    def _named(self, module: str, name: str) -> tuple[str, str] | None:
        if module not in self.modules:
            return None
        here = self.modules[module]
        for each in (name, f"{name}.__init__"):
            if each in here.functions:
                return module, each
        return self._named(*here.origins[name]) if name in here.origins else None


def in_order(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a function as they run: the arguments of a call before the call."""
    for child in ast.iter_child_nodes(node):
        yield from in_order(child)
        yield child


def names_in(node: ast.AST) -> set[str]:
    """Return the names that occur in some source."""
    return {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}


def walk(start: str, source: Path) -> tuple[list[Stop], dict[str, int]]:
    """Return the stops of an argument (`MODULE:FUNCTION:ARGUMENT`), and the floor of each package."""
    files = {name_of(path, source): path for path in sorted((source / "opencse").rglob("*.py"))}
    module, function, argument = start.split(":")
    walked = Walk({name: read(path) for name, path in files.items()}, argument)
    walked.enter(module, function, frozenset({argument}), {})
    return walked.stops, floors(files)


def main(start: str, checkout: Path) -> None:
    """Print the stops, and how many of them are climbs."""
    stops, level = walk(start, checkout / "src")
    climbs, top = 0, package_of(start.split(":")[0])
    for number, stop in enumerate(stops, 1):
        up = level[package_of(stop.module)] > level[package_of(stop.caller)]
        climbs += up
        print(f"{number:4}  {'up' if up else '  '}  {stop.module:40} from {stop.caller}")
    below = [stop for stop in stops if package_of(stop.module) != top]
    print(f"{len(below)} stops below {top}, {len(stops) - len(below)} in it, {climbs} climbs")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]) if len(sys.argv) > 2 else Path(__file__).parents[1])
