"""Reading of text: one sentence per row, streamed from any of the usual file formats."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import (
    ASSETS,
    FileTally,
    existing_path,
    new_file_hash,
    translate_errors,
    unknown_format,
)
from opencse.foundation.tables import TABLES, column_rows, table_columns, table_kind

TEXT_COLUMNS = (
    "text",
    "sentence",
    "sentences",
    "body",
    "content",
    "passage",
    "document",
    "paragraph",
    "abstract",
    "description",
)
"""Common names of a column of text, the likeliest first."""

QUERY_COLUMNS = ("query", "queries", "question", "search")
"""Names of a column of searches."""

Row = tuple[str | None, ...]


class Corpus:
    """An opened corpus: path, name and columns are known, and the format can be read.

    Its files must not change while the object is used.

    Args:
        path: A `.txt`, `.jsonl`, `.csv` or `.tsv` file (optionally `.gz`), a `.parquet` file, or a
            folder of Parquet files.
        name: The user's name for it; by default the file's name.
        tally: What is known of the file's bytes from an earlier reading.

    Attributes:
        path: The file or folder.
        name: The user's name for it.
        columns: Names of the columns (`("text",)` for plain text).
        format: The file's extension, with `.gz` if it is compressed, or `folder`.
        tally: What is known of the file's bytes.

    Raises:
        OpencseError: The path is missing, or its format or encoding is wrong.

    Example:
        corpus = Corpus("corpus.txt")
        print(corpus.columns, next(corpus.texts()))
    """

    def __init__(
        self, path: str | Path, name: str | None = None, tally: FileTally | None = None
    ) -> None:
        self.path = existing_path(path)
        self.name = name or self.path.name
        kind = "folder" if self.path.is_dir() else table_kind(self.path)
        if kind not in ("folder", ".txt", ".parquet", *TABLES):
            raise unknown_format(self.path)
        self.columns = tuple(table_columns(self.path))
        self.format = kind
        if kind != "folder" and self.path.suffix.lower() == ".gz":
            self.format += ".gz"
        self.tally = tally or FileTally()

    def texts(self, column: str = "text") -> Iterator[str]:
        """Yield the non-blank sentences, in order, without reading the corpus into memory."""
        for (text,) in self.rows((column,)):
            if text is not None:
                yield text

    def first_texts(self, count: int, column: str = "text") -> list[str]:
        """Return the first `count` sentences; none if there is no such column."""
        if column not in self.columns:
            return []
        return list(islice(self.texts(column), count))

    def rows(self, columns: Sequence[str]) -> Iterator[Row]:
        """Yield the named columns of every row, in order; null, empty and blank cells are None.

        The first pass to the end also hashes the bytes of the file, so that `content_hash` need not
        read it again.

        Raises:
            OpencseError: There is no such column, a cell holds no text, or the file is damaged.
        """
        tally = None if self.tally.digest else self.tally
        for file, number, cells in column_rows(self.path, columns, tally):
            row = []
            for cell, column in zip(cells, columns, strict=True):
                row.append(_cell(cell, file, number, column))
            yield tuple(row)

    @property
    def content_hash(self) -> str:
        """Hash of the files' bytes (`content_hash`)."""
        if not self.tally.digest:
            self.tally.digest = content_hash(self.path)
        return self.tally.digest


def demo_path(name: str | Path, file: str) -> Path:
    """Return the path of a text; `demo` is a file of the package unless a file has this name.

    Args:
        name: A path, or `"demo"`.
        file: `sentences.txt`, or `pairs.tsv` with scored pairs.

    Raises:
        OpencseError: The path is empty, which would be the current folder.
    """
    if not str(name).strip():
        raise OpencseError(
            "the path is empty", "Name a file or a folder; `.` is the current folder."
        )
    if str(name) == "demo" and not os.path.exists(name):
        return ASSETS / "demo" / file
    return Path(name)


def content_hash(path: str | Path) -> str:
    """Return the BLAKE2b hash of a file's bytes, or of the names and bytes below a folder."""
    path = existing_path(path)
    digest = new_file_hash()
    with translate_errors(path, "cannot be read", "Check the file."):
        files = [path]
        if path.is_dir():
            files = sorted(file for file in path.rglob("*") if file.is_file())
        for file in files:
            if path.is_dir():
                digest.update(os.fsencode(file.relative_to(path).as_posix()) + b"\0")
            with file.open("rb") as stream:
                while block := stream.read(1 << 20):
                    digest.update(block)
    return digest.hexdigest()


def text_column(columns: Sequence[str], source: str | Path, wanted: str | None = None) -> str:
    """Return the column that holds the text.

    It is the wanted one, otherwise the first of `TEXT_COLUMNS`, otherwise the only column.

    Args:
        columns: The columns of the table.
        source: Name of the table, for messages.
        wanted: The column that the user asked for.

    Raises:
        OpencseError: The wanted column is missing, or none of several has a known name.
    """
    known = ", ".join(columns) or "none"
    if wanted is not None:
        if wanted not in columns:
            raise OpencseError(f"{source}: no column '{wanted}'", f"It has: {known}.")
        return wanted
    # Of columns that differ only in case, the first wins.
    by_name = {column.lower(): column for column in reversed(columns)}
    for name in TEXT_COLUMNS:
        if name in by_name:
            return by_name[name]
    if len(columns) == 1:
        return columns[0]
    raise OpencseError(
        f"{source}: which column holds the text? It has {known}", "Name it with `--column`."
    )


def query_column(columns: Sequence[str], source: str | Path) -> str:
    """Return the column that holds searches: the first of `QUERY_COLUMNS`, or that of the text.

    Args:
        columns: The columns of the table.
        source: Name of the table, for messages.

    Raises:
        OpencseError: None of several columns has a known name.
    """
    for name in QUERY_COLUMNS:
        if name in columns:
            return name
    return text_column(columns, source)


def _cell(value: object, path: Path, number: int, column: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise OpencseError(
            f"{path}, line {number}: column '{column}' holds {type(value).__name__}",
            "Give strings.",
        )
    return value if value.strip() else None
