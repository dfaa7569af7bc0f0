"""Documents as passages of sentences: Markdown, HTML, PDF, DOCX, plain text, tables, folders."""

from __future__ import annotations

import importlib.util
import os
import re
import runpy
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import distribution
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

from opencse.foundation.errors import OpencseError
from opencse.foundation.progress import note
from opencse.foundation.reading import (
    FIRST_LINES,
    PACKAGES,
    UNREAD,
    FileTally,
    checked_lines,
    existing_path,
    file_extension,
    fill_tally,
    is_hidden,
    new_file_hash,
    stay_inside,
    unknown_format,
)
from opencse.foundation.tables import TABLES, table_kind, text_lines
from opencse.text.corpus import Corpus, content_hash, text_column
from opencse.text.document_readers import READERS, full_lines
from opencse.text.document_worker import paragraphs_of

LANGUAGES = {
    "da": "Danish",
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fi": "Finnish",
    "fr": "French",
    "it": "Italian",
    "nl": "Dutch",
    "pl": "Polish",
    "pt": "Portuguese",
    "sv": "Swedish",
    "tr": "Turkish",
}
"""The languages that are recognized, by code."""

# Paragraphs by which the language of a document is recognized.
_SAMPLE = 200
# Lines or cells by which opencse judges whether each is one sentence.
_JUDGED = 1000
# A longer line of plain text or cell, in words, is a paragraph.
_LONG = 40
# Lines that are wrapped have more characters.
_MARGIN = 40
# Share of the lines of a wrapped paragraph that the next word would have made too long.
_FULL = 0.7
# Characters of lines without a blank one that may form a paragraph.
_LONGEST_BLOCK = 1_000_000
# A text with a smaller share of stop words is in another language, or is not prose.
_MIN_SHARE = 0.15
_LETTERS = re.compile(r"[^\W\d_]{2,}(?:['’][^\W\d_]+)?")
_END = re.compile(r"[.!?:;…][\"'”’)\]]*$")
# Scripts without spaces between words: kana, Han, Thai, Lao, Burmese and Khmer.
_SPACELESS = re.compile(
    "[\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]"
)
# spaCy takes a time that grows with the square of the length of a word, such as one of 60,000 brackets.
_LONG_WORD = re.compile(r"(\S{1000})(?=\S)")
_FULL_STOP = re.compile(r"([。！？｡][”’」』）]*)(?=[^\s”’」』）])")
# Names of files about a data set, without extension.
_ABOUT = frozenset(
    "readme license licence changelog citation notice contributing dataset_infos".split()
)


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
        path: `.md`, `.html`, `.pdf`, `.docx`, `.txt`, `.csv`, `.tsv`, `.jsonl` (the last four also
            `.gz`), `.parquet`, or a folder. PDF and DOCX need the extra `documents`.

    Attributes:
        path: The file or folder.

    Raises:
        OpencseError: The path is missing.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = existing_path(path)
        # What is known of the bytes of each file that a pass has read to its end.
        self._tallies: dict[Path, FileTally] = {}

    @property
    def content_hash(self) -> str:
        """Hash of the bytes of the file, or of the names and bytes of all files that are read.

        Files that `passages` has read to their ends are not read again.
        """
        if self.path.is_file() or _is_table_folder(self.path):
            return self._hash_of(self.path)
        digest = new_file_hash()
        for file in _sorted_files(self.path, _readable_formats()).documents:
            name = os.fsencode(file.relative_to(self.path).as_posix())
            digest.update(name + b"\0" + self._hash_of(file).encode())
        return digest.hexdigest()

    def _hash_of(self, path: Path) -> str:
        tally = self._tallies.setdefault(path, FileTally())
        if not tally.digest:
            if path.is_dir():
                tally.digest = content_hash(path)
            else:
                fill_tally(path, tally)
        return tally.digest

    @property
    def are_prose(self) -> bool:
        """Whether this is a file of running text, or a folder of documents."""
        if self.path.is_dir():
            return not _is_table_folder(self.path)
        kind = table_kind(self.path)
        if kind != ".txt":
            return kind in READERS
        return not _one_sentence_per_line(line for _, line in text_lines(self.path))

    def passages(self, *, column: str | None = None, words: int = 200) -> Iterator[DocumentPassage]:
        """Yield the passages of all files, in order.

        Running text is split into sentences, and the sentences of a document are joined to passages
        of up to `words` words. If nearly every line of plain text is one sentence
        (`are_sentences`), each line is a passage. So is each cell of a table; longer cells are
        several.

        Args:
            column: Column of tables that holds the text; by default the likeliest by its name.
            words: Maximum number of words in a passage; a longer sentence is a separate passage.

        Raises:
            OpencseError: A file cannot be read or has no such column, or the folder has no
                documents.
        """
        if self.path.is_file() and table_kind(self.path) in (*READERS, ".txt"):
            # An error if the user named another column.
            text_column(("text",), self.path, column)
        for file in _files(self.path, column, self._tallies):
            units = file.units
            split: Iterable[Iterable[str]]
            if file.kind == "lines":
                split = _short_or_split(units)
            else:
                rest = iter(units)
                first = list(islice(rest, _JUDGED))
                units = chain(first, rest)
                if file.kind == "cells" and are_sentences(first):
                    split = _short_or_split(units)
                else:
                    split = split_sentences(units, likely_language(first[:_SAMPLE]))
            if file.kind == "text":
                # Passages go beyond a paragraph.
                split = [chain.from_iterable(split)]
            for sentences in split:
                yield from _packed(file.name, sentences, words)


@dataclass(frozen=True)
class _File:
    """A file of documents, opened.

    Attributes:
        name: Its name.
        kind: "text" for running text, "lines" if each line is a sentence, and "cells" for a table.
        units: Its paragraphs, lines or cells.
    """

    name: str
    kind: Literal["text", "lines", "cells"]
    units: Iterable[str]


def _short_or_split(units: Iterable[str]) -> Iterator[list[str]]:
    """Yield each line or cell as one sentence; split only those of more than `_LONG` words."""
    for unit in units:
        if count_words(unit) <= _LONG:
            yield [" ".join(unit.split())]
        else:
            yield next(split_sentences([unit], likely_language([unit])), [])


def split_sentences(texts: Iterable[str], language: str | None = "en") -> Iterator[list[str]]:
    """Yield the sentences of each text, as split by spaCy's `sentencizer`.

    Args:
        texts: n texts.
        language: Code of their language, whose abbreviations and ordinals ("am 3. Mai") end no
            sentence.
    """
    spaced = (
        _LONG_WORD.sub(r"\1 ", _FULL_STOP.sub(r"\1 ", " ".join(text.split()))) for text in texts
    )
    for doc in _splitter(language or "en").pipe(spaced):
        stripped = [sentence.text.strip() for sentence in doc.sents]
        yield [sentence for sentence in stripped if sentence]


def count_words(text: str) -> int:
    """Return the number of words; in scripts without spaces, two characters count as one word."""
    return len(text.split()) + len(_SPACELESS.findall(text)) // 2


def are_sentences(texts: Sequence[str]) -> bool:
    """Return whether nine of ten texts are one sentence each."""
    # Splitting takes most of the time of a folder with many files, and the others cannot be split.
    in_doubt = [text for text in texts if _inner_end().search(text)]
    if 10 * len(in_doubt) <= len(texts):
        return True
    several = 0
    for sentences in split_sentences(in_doubt, likely_language(texts[:_SAMPLE])):
        if len(sentences) > 1:
            several += 1
    return 10 * several <= len(texts)


@cache
def _inner_end() -> re.Pattern[str]:
    """Return what finds a mark at which spaCy ends a sentence, unless only marks and quotes follow it."""
    from spacy.pipeline import Sentencizer

    marks = re.escape("".join(Sentencizer.default_punct_chars))
    return re.compile(f"[{marks}](?![{marks}\"'”’»)\\]]*\\s*$)")


def _one_sentence_per_line(lines: Iterable[str]) -> bool:
    """Return whether the first lines of a plain text file are sentences, none of them wrapped."""
    first = [line.strip() for line in islice(lines, _JUDGED)]
    texts = [line for line in first if line]
    return list(_paragraphs(first)) == texts and are_sentences(texts)


def _files(path: Path, column: str | None, tallies: dict[Path, FileTally]) -> Iterator[_File]:
    """Yield a file, or each file of a folder.

    Args:
        path: The file or folder.
        column: Column of tables that holds the text.
        tallies: By file; those of files that are read to their ends are filled in.
    """
    readable = _readable_formats()
    if path.is_file() or _is_table_folder(path):
        tally = tallies.setdefault(path, FileTally())
        yield _opened(path, column, readable, tally)
        return
    # The files pass or fail as the same text in one file would.
    first_lines = FIRST_LINES
    for file in _documents_in(path, readable):
        checked_lines(file, first_lines)
        tally = tallies.setdefault(file, FileTally())
        yield _opened(file, column, readable, tally)
        first_lines = max(1, first_lines - 1 - tally.line_feeds)


def _opened(path: Path, column: str | None, readable: Sequence[str], tally: FileTally) -> _File:
    kind = "folder" if path.is_dir() else table_kind(path)
    if kind in READERS:
        if kind not in readable:
            raise unknown_format(path)
        return _File(path.name, "text", paragraphs_of(path, tally=tally))
    if kind == ".txt":
        rest = (line for _, line in text_lines(path, tally))
        first = list(islice(rest, _JUDGED))
        lines = chain(first, rest)
        if _one_sentence_per_line(first):
            return _File(path.name, "lines", (line for line in lines if line.strip()))
        return _File(path.name, "text", _paragraphs(lines))
    table = Corpus(path, tally=tally)
    cells = table.texts(text_column(table.columns, path, column))
    return _File(path.name, "cells", cells)


def _readable_formats() -> list[str]:
    """Return the extensions that can be read with the installed packages."""
    readable = []
    for kind in (*READERS, ".txt", *TABLES, ".parquet"):
        package = PACKAGES.get(kind)
        if package is None or importlib.util.find_spec(package) is not None:
            readable.append(kind)
    return readable


@dataclass(frozen=True)
class _SortedFiles:
    """The files of a folder of documents, without hidden ones.

    Attributes:
        documents: Those that are read, by name.
        links_out: Number of links that lead out of the folder.
        others: Number of the other files by extension.
    """

    documents: Sequence[Path]
    links_out: int
    others: Mapping[str, int]


def _sorted_files(folder: Path, readable: Sequence[str]) -> _SortedFiles:
    documents = []
    links_out = 0
    others: Counter[str] = Counter()
    for file in data_files(folder):
        if not _is_inside(folder, file):
            links_out += 1
        elif file_extension(file) in readable:
            documents.append(file)
        else:
            others[file.suffix.lower()] += 1
    return _SortedFiles(documents, links_out, others)


def _documents_in(folder: Path, readable: Sequence[str]) -> Sequence[Path]:
    """Return the documents of a folder, and report files that are not read."""
    files = _sorted_files(folder, readable)
    if files.links_out:
        note(f"{folder}: {files.links_out:,} links that lead out of the folder are not followed")
    counts = []
    for kind in (*PACKAGES, *UNREAD):
        if kind in files.others:
            counts.append(f"{files.others[kind]:,} {kind} files")
    left_out = ", ".join(counts)
    remedy = f"Known: {', '.join(readable)}; the extra `documents` reads .pdf and .docx."
    if not files.documents:
        but = f", but {left_out}" if left_out else ""
        raise OpencseError(f"{folder}: holds no document{but}", remedy)
    if left_out:
        note(f"{folder}: {left_out} are not read. {remedy}")
    return files.documents


def _is_inside(folder: Path, file: Path) -> bool:
    try:
        stay_inside(folder, file.relative_to(folder).as_posix())
    except OpencseError:
        return False
    return True


def data_files(folder: Path) -> list[Path]:
    """Return the files below a folder, by name, that its writer meant to be read.

    Names that begin with `.`, `_` or `~` are no data (`_SUCCESS`, `.gitattributes`), and next to
    tables neither is a page about them (`README.md`, `LICENSE`).
    """
    found = []
    for file in sorted(folder.rglob("*")):
        parts = file.relative_to(folder).parts
        if file.is_file() and not any(is_hidden(part) for part in parts):
            found.append(file)
    if any(file_extension(file) in (".parquet", *TABLES) for file in found):
        found = [file for file in found if file.stem.lower() not in _ABOUT]
    return found


def _is_table_folder(folder: Path) -> bool:
    """Return whether a folder holds Parquet files only, and is one table."""
    return {file_extension(file) for file in data_files(folder)} == {".parquet"}


def _paragraphs(lines: Iterable[str]) -> Iterator[str]:
    """Yield the lines of plain text; lines wrapped at the margin are joined to a paragraph."""
    block: list[str] = []
    size = 0
    # The empty line at the end closes the last block.
    for line in chain(lines, [""]):
        if line.strip():
            block.append(line.strip())
            size += len(line)
        if block and (not line.strip() or size > _LONGEST_BLOCK):
            if _are_wrapped(block):
                yield " ".join(block)
            else:
                yield from block
            block = []
            size = 0


def _are_wrapped(lines: Sequence[str]) -> bool:
    """Return whether most lines break within a sentence, where the next word would not fit."""
    count = len(lines) - 1
    width = max(map(len, lines))
    if count == 0 or width <= _MARGIN:
        return False
    open_ends = sum(not _END.search(line) for line in lines[:-1])
    full = sum(full_lines(lines, width))
    return 2 * open_ends > count and full >= _FULL * count


def _packed(source: str, sentences: Iterable[str], words: int) -> Iterator[DocumentPassage]:
    """Yield passages of at most `words` words."""
    held: list[str] = []
    size = 0
    for sentence in sentences:
        length = count_words(sentence)
        if held and size + length > words:
            yield DocumentPassage(source, tuple(held))
            held = []
            size = 0
        held.append(sentence)
        size += length
    if held:
        yield DocumentPassage(source, tuple(held))


@cache
def _splitter(language: str) -> Any:
    import spacy

    pipeline = spacy.blank(language)
    pipeline.add_pipe("sentencizer")
    pipeline.max_length = 10_000_000
    return pipeline


def likely_language(texts: Iterable[str]) -> str | None:
    """Return the language whose stop words (spaCy's lists) make up the most of the words.

    Args:
        texts: Some sentences; a hundred words are enough.

    Returns:
        A code of `LANGUAGES`, or None if no language's stop words make up 15 % of the words.
    """
    words = Counter(word.lower() for text in texts for word in _LETTERS.findall(text))
    if not words:
        return None
    shares = {}
    for code in LANGUAGES:
        stop_words = sum(words[word] for word in words.keys() & _stop_words(code))
        shares[code] = stop_words / words.total()
    likeliest = max(shares, key=lambda code: shares[code])
    if shares[likeliest] < _MIN_SHARE:
        return None
    return likeliest


@cache
def _stop_words(code: str) -> frozenset[str]:
    # Only this file is loaded, because importing the package around it compiles the rules of a
    # tokenizer, which takes four seconds for French.
    file = distribution("spacy").locate_file(f"spacy/lang/{code}/stop_words.py")
    return frozenset(runpy.run_path(str(file))["STOP_WORDS"])
