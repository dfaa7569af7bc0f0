"""Check that what the pages name exists: modules, paths, commands and their options, recipe keys, make targets.

    python docs/_site/names.py

A name in a page goes stale when the code renames it, and nothing else would notice.
"""

from __future__ import annotations

import ast
import importlib
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from opencse.commands.main import app
from opencse.foundation.errors import OpencseError
from opencse.recipes import recipe_names
from opencse.recipes.load import RecipeFile

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INLINE = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
TOP_FOLDERS = ("benchmarks/", "docs/", "examples/", "packs/", "scripts/", "src/", "tests/")
KNOWN = {"text_senteval", "out", "sts", "text", "demo", "null", "minilm", "cls", "nan", "inf"}
KNOWN |= {"my_losses", "my_views", "my_tracker"}  # files of the reader
"""Words in code that no source file need contain."""
ENTRY_POINTS = {"opencse.tasks", "opencse.callbacks", "opencse.trackers"}
"""Groups of entry points that are not modules, too."""


def pages() -> list[Path]:
    """Return the pages that people read; the change log may name what is gone."""
    files = subprocess.check_output(
        ["git", "ls-files", "-co", "--exclude-standard", "*.md"], cwd=ROOT, text=True
    )
    hidden = ("CHANGELOG.md", "src/", "tests/")
    return [
        ROOT / name
        for name in files.split()
        if not name.startswith(hidden) and (ROOT / name).exists()
    ]


def vocabulary() -> set[str]:
    """Return every word of the sources, in which a setting, a column or a rule must occur."""
    words = set(KNOWN)
    for folder in ("src", "tests", "benchmarks", "examples", "packs", "scripts"):
        for path in (ROOT / folder).rglob("*"):
            if (
                path.suffix in {".py", ".toml", ".tsv", ".csv", ".j2"}
                and path.stat().st_size < 1_000_000
            ):
                words.update(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    return words


def dotted(name: str) -> str | None:
    """Return what is wrong with a dotted name of this package."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: Any = importlib.import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        for part in parts[end:]:
            if not hasattr(found, part) and part not in getattr(found, "__dataclass_fields__", {}):
                return f"no such name: {name}"
            found = getattr(found, part, None)
        return None
    return f"no such module: {name}"


def python_block(code: str) -> Iterator[str]:
    """Yield what is wrong with the imports of a Python block, or with a copy of an example."""
    first = code.splitlines()[0] if code.strip() else ""
    if (match := re.match(r"# (examples/\w+\.py)$", first)) and code.split("\n", 1)[1] != (
        ROOT / match[1]
    ).read_text():
        yield f"differs from {match[1]}"
    try:
        tree = ast.parse(code)
    except SyntaxError:
        yield "Python that does not parse: " + first
        return
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("opencse"):
            yield from filter(None, (dotted(f"{node.module}.{alias.name}") for alias in node.names))
        elif (
            isinstance(node, ast.Attribute)
            and isinstance(node.value, ast.Name)
            and node.value.id == "opencse"
        ):
            yield from filter(None, [dotted(f"opencse.{node.attr}")])


def command(line: str) -> Iterator[str]:
    """Yield what is wrong with one shell command."""
    words = shlex.split(line, comments=True)
    if "opencse.commands.main" in words:
        words = ["opencse", *words[words.index("opencse.commands.main") + 1 :]]
    words = [word for word in words if "=" not in word or not word.split("=")[0].isupper()]
    if words[:1] == ["make"]:
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        targets = {
            name
            for line in re.findall(r"^([^\s#:=][^:=\n]*):(?!=)", makefile, re.M)
            for name in line.split()
        }
        yield from (f"no make target {word}" for word in words[1:] if word not in targets)
    if len(words) > 1 and words[0] in {"python", "python3"} and words[1].endswith(".py"):
        yield from script(words)
    if words[:1] == ["opencse"] and len(words) > 1 and not words[1].startswith("-"):
        yield from opencse_command(words[1:])


def script(words: list[str]) -> Iterator[str]:
    """Yield what is wrong with a call of a script of the repository."""
    path = ROOT / words[1]
    if not path.exists():
        if words[1].startswith(TOP_FOLDERS):
            yield f"no such script: {words[1]}"
        return
    text = path.read_text(encoding="utf-8")
    yield from (
        f"{words[1]} has no option {word}"
        for word in words
        if word.startswith("--") and f'"{word}"' not in text
    )


def opencse_command(words: list[str]) -> Iterator[str]:
    """Yield what is wrong with a call of the command line: the command, its options, the recipe, the keys of --set."""
    found: Any = typer.main.get_command(app).commands.get(words[0])  # type: ignore[attr-defined]
    if found is None:
        yield f"no such command: opencse {words[0]}"
        return
    subcommands = getattr(found, "commands", {})
    if len(words) > 1 and words[1] in subcommands:
        found = subcommands[words[1]]
    known = {name for param in found.params for name in param.opts + param.secondary_opts} | {
        "--help"
    }
    yield from (
        f"opencse {words[0]} has no option {w}"
        for w in words
        if re.match(r"--?[a-z]", w) and w.split("=")[0] not in known
    )
    if words[0] in {"run", "train"} and len(words) > 1 and words[1] in recipe_names():
        keys = [words[i + 1] for i, word in enumerate(words[:-1]) if word == "--set"]
        keys = [key for key in keys if not any(part in key for part in ("…", "PATH", "$"))]
        try:
            file = RecipeFile.read(words[1])
            having = ["paraphrases"] if "--paraphrases" in words and file.layers["with"] else []
            file.resolve(family="other", variant="sound", overrides=keys, having=having)
        except OpencseError as error:
            yield f"{' '.join(words[:2])}: {error}"


def inline(code: str, words: set[str]) -> Iterator[str]:
    """Yield what is wrong with a piece of code within a sentence."""
    if code in ENTRY_POINTS:
        return
    if re.fullmatch(r"opencse(\.\w+)+", code):
        yield from filter(None, [dotted(code)])
    elif code.startswith(("opencse ", "make ", "python ")):
        yield from command(code)
    elif code.startswith(TOP_FOLDERS):
        if not list(ROOT.glob(code.split(" ")[0].rstrip("/"))):
            yield f"no such path: {code}"
    elif re.fullmatch(r"[a-z][\w.]*( = .*)?", code) and not code.endswith(
        (".txt", ".toml", ".csv", ".html", ".jsonl")
    ):
        key = code.split(" = ")[0]
        yield from (
            f"no such name in the sources: {code}"
            for part in re.split(r"[.\s]", key)
            if part and part not in words
        )


def problems(page: Path, words: set[str]) -> Iterator[str]:
    """Yield what is wrong with a page."""
    text = page.read_text(encoding="utf-8")
    for language, code in FENCE.findall(text):
        if language == "python":
            yield from python_block(code)
        elif language == "bash":
            for line in code.replace("\\\n", " ").splitlines():
                yield from command(line)
        elif language == "toml":
            try:
                tomllib.loads(code)
            except tomllib.TOMLDecodeError as error:
                yield f"TOML that does not parse: {error}"
    for code in INLINE.findall(FENCE.sub("", text)):
        yield from inline(code, words)


def main() -> int:
    """Print what is wrong, and return the exit code."""
    words = vocabulary()
    found = [
        (page.relative_to(ROOT), each)
        for page in pages()
        for each in dict.fromkeys(problems(page, words))
    ]
    for page, each in found:
        print(f"{page}: {each}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
