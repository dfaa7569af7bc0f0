"""Readers of documents: the paragraphs of Markdown, HTML, PDF and DOCX files.

A document comes from a stranger, and a small one can keep its parser busy for hours or fill the
memory. So the readers run in a separate process, which `opencse.text.document_worker` limits
and ends.
"""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import FileTally, error_reason, file_extension, open_tallied
from opencse.foundation.tables import text_lines

_MOST_PAGES = 10_000
# Bytes of the XML in a DOCX file.
_MOST_UNPACKED = 512 * 2**20
# Levels of lists and quotes in Markdown, two for a list.
_DEEPEST = 60
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_BLOCKS = frozenset(
    """address article aside blockquote body br caption dd div dl dt fieldset figcaption
    figure footer form h1 h2 h3 h4 h5 h6 header hr li main nav ol option p pre section
    summary table tbody td th thead title tr ul""".split()
)
_HIDDEN = frozenset("head nav noscript pre script style svg template".split())


def full_lines(lines: Sequence[str], width: int) -> list[bool]:
    """Return for each line but the last whether the next line's first word would not fit in it."""
    return [len(a) + 1 + len(b.split()[0]) > width for a, b in pairwise(lines)]


def read_paragraphs(path: Path, tally: FileTally) -> Iterator[str]:
    """Yield the paragraphs of a document, by its extension.

    Args:
        path: The document, which is read once.
        tally: Filled in when the document was read.

    Raises:
        OpencseError: The document cannot be read.
    """
    kind = file_extension(path)
    try:
        yield from READERS[kind](path, tally)
    except (OpencseError, MemoryError):
        raise
    except Exception as error:  # parsers of three formats, without a common class of errors
        name = NAMES[kind]
        raise OpencseError(
            f"{path}: cannot be read as {name} ({error_reason(error)})",
            "Save or export it again, or convert it to text.",
        ) from error


def _content(path: Path, tally: FileTally) -> io.BytesIO:
    """Return a file as a stream in memory, for parsers that move back and forth in it."""
    with open_tallied(path, tally) as file:
        return io.BytesIO(file.read())


def _pdf(path: Path, tally: FileTally) -> Iterator[str]:
    """Yield the paragraphs of the text layer of a PDF file: a line that is not full ends one."""
    import pypdf

    reader = pypdf.PdfReader(_content(path, tally))
    count = len(reader.pages)
    if count > _MOST_PAGES:
        raise OpencseError(f"{path}: has {count:,} pages, more than {_MOST_PAGES:,}", "Split it.")
    pages = [page.extract_text().splitlines() for page in reader.pages]
    lines = [line.strip() for page in pages for line in page if line.strip()]
    if not lines:
        raise OpencseError(
            f"{path}: has no text layer", "Recognise its text first, for example with ocrmypdf."
        )
    width = sorted(map(len, lines))[len(lines) * 9 // 10]
    text = lines[0]
    for full, line in zip(full_lines(lines, width), lines[1:], strict=True):
        if text.endswith("-") and line[0].islower():
            text = text[:-1] + line
        elif full:
            text += f" {line}"
        else:
            yield text
            text = line
    yield text


def _docx(path: Path, tally: FileTally) -> Iterator[str]:
    """Yield the paragraphs and table cells of a DOCX file."""
    content = _content(path, tally)
    with zipfile.ZipFile(content) as archive:
        unpacked = sum(member.file_size for member in archive.infolist())
    if unpacked > _MOST_UNPACKED:
        raise OpencseError(
            f"{path}: unpacks to {unpacked >> 20:,} MiB, more than {_MOST_UNPACKED >> 20}",
            "Save its text alone.",
        )
    import docx

    document = docx.Document(content)
    for paragraph in document.paragraphs:
        if paragraph.text.strip():
            yield paragraph.text
    for table in document.tables:
        yield from _cells(table)


def _cells(table: Any) -> Iterator[str]:
    """Yield the text of each cell once; `row.cells` repeats it for every column that it spans."""
    from docx.table import _Cell

    for row in table._tbl.tr_lst:
        for cell in row.tc_lst:
            text = _Cell(cell, table).text
            if text.strip():
                yield text


def _markdown(path: Path, tally: FileTally) -> Iterator[str]:
    """Yield paragraphs, headings, list items and table cells of Markdown, without code blocks."""
    from markdown_it import MarkdownIt

    text = "\n".join(line for _, line in text_lines(path, tally))
    # At its own limit of depth the parser drops the rest without a word, so it is set above the one here.
    parser = MarkdownIt("commonmark", {"maxNesting": 2 * _DEEPEST}).enable("table")
    for token in parser.parse(_FRONT_MATTER.sub("", text)):
        if token.level > _DEEPEST:
            raise OpencseError(
                f"{path}: lists or quotes are nested {_DEEPEST // 2} levels deep", "Flatten them."
            )
        if token.type == "inline":
            yield "".join(map(_markdown_text, token.children or ()))


def _markdown_text(token: Any) -> str:
    if token.type in ("text", "code_inline"):
        return str(token.content)
    return " " if token.type.endswith("break") else ""


def _html(path: Path, tally: FileTally) -> Iterator[str]:
    """Yield the blocks of a page as plain text, without scripts, styles, menus and code."""
    page = _Page()
    try:
        for _, line in text_lines(path, tally):
            page.feed(f"{line}\n")
        page.close()
    except AssertionError as error:  # of Python's parser, at some declarations
        raise OpencseError(
            f"{path}: no valid HTML ({error})", "Mend it, or convert it to text."
        ) from error
    for block in "".join(page.parts).split("\0"):
        if block.strip():
            yield " ".join(block.split())


class _Page(HTMLParser):
    """Collects the visible text of a page, blocks separated by NUL."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[str] = []
        self._hidden: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _HIDDEN:
            self._hidden.append(tag)
        if tag in _BLOCKS:
            self.parts.append("\0")

    def handle_endtag(self, tag: str) -> None:
        if tag in self._hidden:
            del self._hidden[self._hidden.index(tag) :]
        if tag in _BLOCKS:
            self.parts.append("\0")

    def handle_data(self, data: str) -> None:
        if not self._hidden:
            self.parts.append(data.replace("\0", ""))


READERS: dict[str, Callable[[Path, FileTally], Iterable[str]]] = {
    **dict.fromkeys((".md", ".markdown"), _markdown),
    **dict.fromkeys((".html", ".htm"), _html),
    ".pdf": _pdf,
    ".docx": _docx,
}
"""Readers of running text by extension."""
NAMES = {
    ".md": "Markdown",
    ".markdown": "Markdown",
    ".html": "HTML",
    ".htm": "HTML",
    ".pdf": "PDF",
    ".docx": "DOCX",
}
