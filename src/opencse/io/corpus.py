"""Reading of text: one sentence per row, streamed from any of the usual file formats."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from opencse.errors import OpencseError
from opencse.io.parquet import arrow_columns, arrow_files
from opencse.io.reading import existing_path, require_columns, translate_errors, unknown_format
from opencse.io.tables import TABLES, file_extension, read_lines, read_table, table_columns
from opencse.io.text_column import text_column

Row = tuple[str | None, ...]


class Corpus:
    """A corpus that has been opened: the path, the name and the columns are known, and the format can be read.

    Its files are expected not to change as long as the object is used.

    Args:
        path: As for `read_texts`.
        name: The user's name for it; by default the file's name.

    Attributes:
        path: The file or folder.
        name: The user's name for it.
        columns: Names of the columns (`("text",)` for plain text).

    Raises:
        OpencseError: The path is missing, or its format or encoding is wrong.

    Example:
        corpus = Corpus("corpus.txt")
        print(corpus.columns, next(corpus.texts()))
    """

    def __init__(self, path: str | Path, name: str | None = None) -> None:
        self.path = Path(path)
        self.name = name or self.path.name
        self.columns = tuple(column_names(path))

    def text_column(self, wanted: str | None = None) -> str:
        """Return the column that holds the text: `wanted`, or the likeliest by its name (`text_column`)."""
        return text_column(self.columns, self.path, wanted)

    def texts(self, column: str = "text") -> Iterator[str]:
        """Yield the non-blank sentences, in order (`read_texts`)."""
        return read_texts(self.path, column)

    def rows(self, columns: Sequence[str]) -> Iterator[Row]:
        """Yield the named columns of every row (`read_rows`)."""
        return read_rows(self.path, columns)

    @property
    def format(self) -> str:
        """The file's extension, with `.gz` if it is compressed, or `folder`."""
        return corpus_format(self.path)

    @cached_property
    def content_hash(self) -> str:
        """Hash of the files' bytes (`content_hash`)."""
        return content_hash(self.path)


def read_texts(path: str | Path, column: str = "text") -> Iterator[str]:
    """Yield the non-blank sentences of a corpus, in order, without reading it into memory.

    Args:
        path: A `.txt`, `.jsonl`, `.csv` or `.tsv` file (optionally `.gz`), a `.parquet` file, a folder of Parquet
            files, or a folder saved by `datasets`.
        column: The column to read where the format has columns.

    Raises:
        OpencseError: The path is missing, its format or encoding is wrong, or it has no such column.
    """
    for (text,) in read_rows(path, (column,)):
        if text is not None and text.strip():
            yield text


def read_rows(path: str | Path, columns: Sequence[str]) -> Iterator[Row]:
    """Yield the named columns of every row, in order; a cell is None if it is null, empty or blank.

    A `.txt` file has one column, `text`.

    Args:
        path: As for `read_texts`.
        columns: Names of the columns to read.

    Raises:
        OpencseError: As `read_texts`.
    """
    path = existing_path(path)
    kind = file_extension(path)
    if path.is_dir() or kind == ".parquet":
        for file, cells in arrow_files(path, columns):
            yield from _as_text(cells, file, columns)
    elif kind == ".txt":
        require_columns(columns, ["text"], path)
        for _, line in read_lines(path):
            yield tuple(line if line.strip() else None for _ in columns)
    elif kind in TABLES:
        if names := table_columns(path):
            require_columns(columns, names, path)
        for number, row in read_table(path):
            yield tuple(_cell(row.get(c), path, number, c) for c in columns)
    else:
        raise unknown_format(path)


def column_names(path: str | Path) -> list[str]:
    """Return the names of the columns of a corpus (`["text"]` for plain text).

    Raises:
        OpencseError: The path is missing, or its format or encoding is wrong.
    """
    path = existing_path(path)
    if path.is_dir() or file_extension(path) == ".parquet":
        return arrow_columns(path)
    if file_extension(path) == ".txt":
        next(read_lines(path), None)  # finds a file without line ends before anything reads all of it
        return ["text"]
    if file_extension(path) not in TABLES:
        raise unknown_format(path)
    return table_columns(path)


def corpus_format(path: str | Path) -> str:
    """Return the format of a corpus: the file's extension, with `.gz` if it is compressed, or `folder`."""
    path = Path(path)
    return "folder" if path.is_dir() else file_extension(path) + (".gz" if path.suffix == ".gz" else "")


def content_hash(path: str | Path) -> str:
    """Return the hexadecimal BLAKE2b hash of a file's bytes, or of the names and bytes of all files below a folder."""
    path = existing_path(path)
    digest = hashlib.blake2b(digest_size=16)
    with translate_errors(path, "cannot be read", "Check the file."):
        files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
        for file in files:
            if path.is_dir():
                digest.update(os.fsencode(file.relative_to(path).as_posix()) + b"\0")
            with file.open("rb") as stream:
                while block := stream.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()


def _cell(value: object, path: Path, number: int, column: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise OpencseError(f"{path}, line {number}: column '{column}' holds {type(value).__name__}, not text")
    return value if value.strip() else None


def _as_text(rows: Iterable[tuple[Any, ...]], path: Path, columns: Sequence[str]) -> Iterator[Row]:
    for number, row in enumerate(rows, 1):
        yield tuple(_cell(value, path, number, c) for value, c in zip(row, columns, strict=True))


def chunks(rows: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Yield lists of `size` rows; the last may be shorter."""
    iterator = iter(rows)
    while chunk := list(islice(iterator, size)):
        yield chunk
