"""Documents as passages of sentences: Markdown, HTML, plain text, tables, and folders of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from opencse.foundation.errors import OpencseError
from opencse.foundation.parquet import saved_by_datasets
from opencse.foundation.progress import note
from opencse.foundation.reading import CONVERTERS, existing_path, file_extension
from opencse.foundation.tables import TABLES, read_lines
from opencse.text import demo
from opencse.text.corpus import Corpus
from opencse.text.language import likely_language

PROSE = (".md", ".markdown", ".html", ".htm")
"""Extensions of running text. All other formats hold one text per line or row."""

_SAMPLE = 200  # paragraphs by which the language of a document is recognised
_LONG = 40  # words above which a line of plain text or a cell is a paragraph
_FRONT_MATTER = re.compile(r"\A---\n.*?\n---\n", re.DOTALL)
_END = re.compile(r"[.!?:;…][\"'”’)\]]*$")
_BLOCKS = frozenset(
    """address article aside blockquote body br caption dd div dl dt fieldset figcaption figure footer form h1 h2 h3 h4
    h5 h6 header hr li main nav ol option p pre section summary table tbody td th thead title tr ul""".split()
)
_HIDDEN = frozenset("head nav noscript pre script style svg template".split())


@dataclass(frozen=True, slots=True)
class DocumentPassage:
    """Consecutive sentences of a document, as a search index would store them.

    Attributes:
        source: Name of the file.
        sentences: The sentences, at least one.
    """

    source: str
    sentences: tuple[str, ...]

    @property
    def text(self) -> str:
        """The sentences as one string."""
        return " ".join(self.sentences)


class Documents:
    """A file of text, or all files in a folder, that are read as passages.

    Args:
        path: `.md`, `.html`, `.txt`, `.csv`, `.tsv`, `.jsonl` (the last four also `.gz`), `.parquet`, a folder, or
            `"demo"`.

    Attributes:
        path: The file or folder.

    Raises:
        OpencseError: The path is missing.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = existing_path(demo.corpus(path))

    @property
    def are_prose(self) -> bool:
        """Whether this is a file of running text, or a folder of documents."""
        if self.path.is_dir():
            return not _is_table_folder(self.path) and any(True for _ in _files(self.path))
        return file_extension(self.path) in PROSE

    def passages(self, *, column: str | None = None, words: int = 200) -> Iterator[DocumentPassage]:
        """Yield the passages of all files, in order.

        Running text (Markdown, HTML) is split into sentences, and the sentences of a document are joined to passages of
        up to `words` words. Each line of plain text and each cell of a table is one passage, or several if it is
        longer.

        Args:
            column: Column of tables that holds the text; by default the likeliest by its name.
            words: Maximum number of words in a passage; a longer sentence is a passage of its own.

        Raises:
            OpencseError: A file cannot be read, or the folder has no documents.
        """
        for source, units, joined in _units(self.path, column):
            sentences: list[str] = []
            for unit in _running_text(list(units)) if joined else _short_or_split(units):
                if not joined:
                    yield from _packed(source, unit, words)
                else:
                    sentences += unit
            yield from _packed(source, sentences, words)


def split_sentences(texts: Iterable[str], language: str | None = "en") -> Iterator[list[str]]:
    """Yield the sentences of each text, as split by spaCy's `sentencizer`.

    Args:
        texts: n texts.
        language: Code of their language, whose abbreviations and ordinals ("am 3. Mai") end no sentence.
    """
    for doc in _splitter(language or "en").pipe(" ".join(text.split()) for text in texts):
        yield [sentence.text.strip() for sentence in doc.sents if sentence.text.strip()]


def _units(path: Path, column: str | None) -> Iterator[tuple[str, Iterable[str], bool]]:
    """Yield the name of each file, its paragraphs, lines or cells, and whether they form one running text."""
    if path.is_dir() and not _is_table_folder(path):
        files = list(_files(path))
        if not files:
            known = ", ".join([*PROSE, ".txt", *TABLES, ".parquet"])
            raise OpencseError(f"{path}: holds no document{_left_out(path)}", f"Known: {known}.")
        if left_out := _left_out(path):
            note(f"{path}: {left_out.removeprefix(', ')}; convert them to text or Markdown first")
        for file in files:
            yield from _units(file, column)
        return
    kind = file_extension(path)
    if kind in PROSE:
        text = "\n".join(line for _, line in read_lines(path))
        yield path.name, _html(text, path) if kind in (".html", ".htm") else _markdown(text), True
    elif kind == ".txt":
        yield path.name, _paragraphs(line for _, line in read_lines(path)), False
    else:
        table = Corpus(path)
        yield path.name, table.texts(table.text_column(column)), False


def _files(folder: Path) -> Iterator[Path]:
    known = (*PROSE, ".txt", *TABLES, ".parquet")
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if path.is_file() and not hidden and file_extension(path) in known:
            yield path


def _left_out(folder: Path) -> str:
    """Return how many documents of a folder are in a format that is not read, as a clause; empty if there are none."""
    kinds = Counter(each.suffix.lower() for each in folder.rglob("*") if each.suffix.lower() in CONVERTERS)
    return "".join(f", {count:,} {kind} files are not read" for kind, count in sorted(kinds.items()))


def _is_table_folder(folder: Path) -> bool:
    """Return whether a folder is one table: saved by `datasets`, or with Parquet files only."""
    kinds = {file_extension(file) for file in folder.iterdir() if file.is_file()}
    return saved_by_datasets(folder) or kinds == {".parquet"}


def _paragraphs(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of plain text; lines that were only wrapped at the margin are joined to a paragraph."""
    block: list[str] = []
    for line in [*lines, ""]:
        if line.strip():
            block.append(line.strip())
        elif block:
            wrapped = sum(not _END.search(each) for each in block[:-1])
            yield from [" ".join(block)] if 2 * wrapped > len(block) - 1 else block
            block = []


def _running_text(units: Sequence[str]) -> Iterator[list[str]]:
    return split_sentences(units, likely_language(units[:_SAMPLE]))


def _short_or_split(units: Iterable[str]) -> Iterator[list[str]]:
    """Yield each line or cell as one sentence, or split into its sentences if it is long."""
    for unit in units:
        if len(unit.split()) > _LONG:
            yield next(split_sentences([unit], likely_language([unit])), [])
        else:
            yield [" ".join(unit.split())]


def _packed(source: str, sentences: Sequence[str], words: int) -> Iterator[DocumentPassage]:
    """Yield passages of at most `words` words."""
    held: list[str] = []
    size = 0
    for sentence in sentences:
        length = len(sentence.split())
        if held and size + length > words:
            yield DocumentPassage(source, tuple(held))
            held, size = [], 0
        held.append(sentence)
        size += length
    if held:
        yield DocumentPassage(source, tuple(held))


def _markdown(text: str) -> Iterator[str]:
    """Yield the paragraphs, headings, list items and table cells of Markdown as plain text, without code."""
    from markdown_it import MarkdownIt

    for token in MarkdownIt("commonmark").enable("table").parse(_FRONT_MATTER.sub("", text)):
        if token.type == "inline":
            yield "".join(_inline(child) for child in token.children or ())


def _inline(token: Any) -> str:
    if token.type in ("softbreak", "hardbreak"):
        return " "
    return token.content if token.type in ("text", "code_inline") else ""


def _html(text: str, path: Path) -> Iterator[str]:
    """Yield the blocks of a page as plain text, without scripts, styles, menus and code."""
    page = _Page()
    try:
        page.feed(text)
        page.close()
    except AssertionError as error:  # of Python's parser, at some declarations
        raise OpencseError(f"{path}: no valid HTML ({error})", "Mend it, or convert it to text.") from error
    yield from (" ".join(block.split()) for block in "".join(page.parts).split("\0") if block.strip())


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


@cache
def _splitter(language: str) -> Any:
    import spacy

    pipeline = spacy.blank(language)
    pipeline.add_pipe("sentencizer")
    pipeline.max_length = 10_000_000
    return pipeline
