"""Let Sphinx read the docstrings as they are written, which is plain text with a little Markdown.

Single backticks are code (`default_role`). The rest of the Markdown is rewritten here: examples
become code blocks, tables become list-tables, and a bar in a sentence stays a bar.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from sphinx.application import Sphinx

EXAMPLE = re.compile(r"^(\s*)Examples?:\s*$")
FENCE = re.compile(r"^(\s*)```(\w*)\s*$")
RULE = re.compile(r"^\s*\|[\s:|-]+\|\s*$")


def indentation(line: str) -> int:
    """Return the number of leading spaces."""
    return len(line) - len(line.lstrip())


def code_block(language: str, indent: int, body: list[str]) -> list[str]:
    """Return a literal block."""
    return [
        f"{' ' * indent}.. code-block:: {language}",
        "",
        *(f"    {line}" if line.strip() else "" for line in body),
        "",
    ]


def take_section(lines: list[str], start: int, indent: int) -> int:
    """Return the index behind the last line that is indented at least this far."""
    end = start
    while end < len(lines) and (not lines[end].strip() or indentation(lines[end]) >= indent):
        end += 1
    return end


def table(rows: list[str]) -> Iterator[str]:
    """Yield a Markdown table as a list-table."""
    indent = " " * indentation(rows[0])
    yield from ("", f"{indent}.. list-table::", f"{indent}   :header-rows: 1", "")
    for row in rows:
        if not RULE.match(row):
            for number, cell in enumerate(
                escaped(each.strip()) for each in row.strip().strip("|").split("|")
            ):
                yield f"{indent}   {'*' if number == 0 else ' '} - {cell}"
    yield ""


def escaped(line: str) -> str:
    """Return the line with bars outside of code escaped, and with code such as `View`s ended before the letter."""
    line = re.sub(r"(?<!`)(`[^`]+`)(?=\w)", r"\1\\ ", line)
    parts = re.split(r"(`[^`]*`)", line)
    return "".join(part if part.startswith("`") else part.replace("|", r"\|") for part in parts)


def is_code(line: str, indent: int) -> bool:
    """Return whether the first line of an example is code that nothing marks as such yet."""
    return indentation(line) > indent and not line.lstrip().startswith((">>>", ".. ", "```"))


def as_restructured_text(lines: list[str]) -> list[str]:
    """Return a docstring's lines as reStructuredText."""
    out: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        following = next((text for text in lines[at + 1 :] if text.strip()), "")
        if (fence := FENCE.match(line)) is not None:
            end = next((i for i in range(at + 1, len(lines)) if FENCE.match(lines[i])), len(lines))
            out += code_block(fence[2] or "text", indentation(line), lines[at + 1 : end])
            at = end + 1
        elif line.lstrip().startswith(".. "):
            end = take_section(lines, at + 1, indentation(line) + 1)
            out += lines[at:end]
            at = end
        elif (
            EXAMPLE.match(line)
            and indentation(following) > indentation(line)
            and following.lstrip()[:2] not in (">>", "..", "``")
        ):
            end = take_section(lines, at + 1, indentation(following))
            language = (
                "toml"
                if re.match(r"\s*(\[|#|\w+ = )", following) and "opencse." not in following
                else "python"
            )
            if following.lstrip().startswith(("opencse ", "$ ")):
                language = "bash"
            out += [line, *code_block(language, indentation(following), lines[at + 1 : end])]
            at = end
        elif line.lstrip().startswith("|") and RULE.match(
            lines[at + 1] if at + 1 < len(lines) else ""
        ):
            end = at
            while end < len(lines) and lines[end].lstrip().startswith("|"):
                end += 1
            out += table(lines[at:end])
            at = end
        else:
            out.append(escaped(line))
            at += 1
    return out


def on_docstring(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]
) -> None:
    """Rewrite a docstring in place. A constant without a docstring does not borrow that of its type."""
    borrowed = (type(obj).__doc__ or "").strip()
    if what == "data" and borrowed and "\n".join(lines).strip().startswith(borrowed[:40]):
        lines.clear()
    lines[:] = as_restructured_text(lines)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register before napoleon, which turns sections into fields."""
    app.connect("autodoc-process-docstring", on_docstring, priority=100)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
