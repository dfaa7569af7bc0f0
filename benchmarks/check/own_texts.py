"""Write two folders of texts that this machine has: docstrings of Python's standard library, and licences.

python benchmarks/check/own_texts.py OUT     # OUT/python/MODULE.txt, OUT/licences/NUMBER.txt
"""

from __future__ import annotations

import ast
import re
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

WORDS = 8  # of a text, at least
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def reference(library: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the modules with at least 150 words of documentation, and their docstrings."""
    for path in sorted([*library.glob("*.py"), *library.glob("*/__init__.py")]):
        if {"site-packages", "test", "idlelib"} & {*path.parts}:
            continue
        nodes = [
            node for node in ast.walk(ast.parse(path.read_bytes())) if isinstance(node, DOCUMENTED)
        ]
        texts = [
            text for text in map(ast.get_docstring, nodes) if text and len(text.split()) >= WORDS
        ]
        if sum(len(text.split()) for text in texts) > 150:
            yield "_".join(path.relative_to(library).with_suffix("").parts), texts


def licences(*folders: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield the licence files, and their paragraphs that none before had."""
    seen: set[str] = set()
    files = [path for folder in folders for path in sorted(folder.rglob("*")) if path.is_file()]
    for number, path in enumerate(files):
        if "LICEN" not in path.name and folders[0] not in path.parents:
            continue
        paragraphs = [
            " ".join(each.split()) for each in re.split(r"\n\s*\n", path.read_text(errors="ignore"))
        ]
        new = [
            each
            for each in dict.fromkeys(paragraphs)
            if len(each.split()) >= WORDS and each not in seen
        ]
        seen.update(new)
        if new:
            yield f"{number:05}", new


def main(out: Path) -> None:
    paths = {name: Path(path) for name, path in sysconfig.get_paths().items()}
    corpora = {
        "python": reference(paths["stdlib"]),
        "licences": licences(Path("/usr/share/common-licenses"), paths["purelib"]),
    }
    for name, files in corpora.items():
        (out / name).mkdir(parents=True, exist_ok=True)
        for title, texts in files:
            (out / name / f"{title}.txt").write_text("\n\n".join(texts), encoding="utf-8")
        print(name, len(list((out / name).iterdir())))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
