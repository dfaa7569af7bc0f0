"""Streamed, strict reading of lines and of the rows of tables; errors name the line."""

from __future__ import annotations

import csv
import gzip
import math
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from opencse.foundation.errors import OpencseError
from opencse.foundation.reading import (
    LONGEST_LINE,
    error_reason,
    file_extension,
    json_object,
    regular_file,
    require_columns,
)

TABLES = (".csv", ".tsv", ".jsonl")
"""The formats of `read_table`; each may end in `.gz`."""

_LONGEST_NAME = 1000  # characters; a longer "name" is a text, and the header is missing


class LineFile:
    """A file of plain text, plain or `.gz`: one column, `text`, and a row for each line.

    Raises:
        OpencseError: As `read_lines`, of the first line: a file without line ends is found before all of it is read.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.columns = ["text"]
        next(read_lines(path), None)

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[Path, int, Sequence[object]]]:
        """Yield the file, the line number and the named columns of every row."""
        require_columns(columns, self.columns, self._path)
        for line, text in read_lines(self._path):
            yield self._path, line, [text] * len(columns)


class TableFile:
    """A `.csv`, `.tsv` or `.jsonl` file, plain or `.gz`, as `read_table` reads it.

    Raises:
        OpencseError: As `table_columns`.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.columns = table_columns(path)

    def rows(self, columns: Sequence[str]) -> Iterator[tuple[Path, int, Sequence[object]]]:
        """Yield the file, the line number and the named columns of every row."""
        if self.columns:  # an empty file has no rows either
            require_columns(columns, self.columns, self._path)
        for line, row in read_table(self._path):
            yield self._path, line, [row.get(column) for column in columns]


def read_lines(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    r"""Yield `(line number, text)` of a file, plain or `.gz`; lines end at `\n` or `\r\n`.

    Other Unicode line separators are part of the text. A byte order mark is dropped.

    Raises:
        OpencseError: The path is missing, not a regular file, or an incomplete gzip file; or a line is not in this
            encoding, or longer than `LONGEST_LINE`.
    """
    line = 0
    path = regular_file(path)
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            while raw := file.readline(LONGEST_LINE + 1):
                line += 1
                if len(raw) > LONGEST_LINE:
                    raise OpencseError(
                        f"{path}, line {line}: longer than {LONGEST_LINE >> 20} MiB",
                        "Write one sentence or record per line, each ended by a line feed.",
                    )
                text = raw.decode(encoding).removesuffix("\n").removesuffix("\r")
                yield line, text.removeprefix("\ufeff") if line == 1 else text
    except UnicodeDecodeError as problem:
        raise OpencseError(
            f"{path}, line {line}: not valid UTF-8 ({problem.reason} at byte {problem.start})",
            "Convert the file, for example with `iconv -f latin1 -t utf-8`.",
        ) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
        raise OpencseError(
            f"{path}, after line {line}: not a complete gzip file ({problem})", "Copy or compress it again."
        ) from None
    except OSError as problem:
        raise OpencseError(f"{path}, after line {line}: {error_reason(problem)}", "Check the file.") from None


def read_table(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield `(line number, cells by column name)` of a `.csv`, `.tsv` or `.jsonl` file, plain or `.gz`.

    CSV is quoted as in RFC 4180. **TSV has no quoting**: a quotation mark is an ordinary character. In both, the first
    row that is not blank names the columns. A blank line has an empty mapping.

    Raises:
        OpencseError: As `read_lines`; or the format is unknown, a row has too many or too few cells, or a line is not a
            JSON object.
    """
    kind = file_extension(path)
    if kind == ".jsonl":
        yield from _json_rows(path)
    elif kind in TABLES:
        yield from _named_rows(path, _cells(path))
    else:
        raise OpencseError(f"{path}: cannot tell the format", f"Use one of {', '.join(TABLES)}, each also as .gz.")


def table_columns(path: Path) -> list[str]:
    """Return the names of the columns: the header, or the keys of the first JSON object; empty for an empty file."""
    if file_extension(path) == ".jsonl":
        return next((list(row) for _, row in _json_rows(path) if row), [])
    rows = _cells(path)
    header = next((cells for _, cells in rows if any(cell.strip() for cell in cells)), [])
    return _header(header, path)


def parse_score(cell: object, path: Path, line: int) -> float:
    """Return the score in a cell.

    Raises:
        OpencseError: It is not a finite number; the message has file and line.
    """
    try:
        value = float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        value = math.nan
    if not math.isfinite(value) or isinstance(cell, bool):
        raise OpencseError(f"{path}, line {line}: score {cell!r} is not a number", "Give a number or drop the row.")
    return value


def _cells(path: Path) -> Iterator[tuple[int, list[str]]]:
    if file_extension(path) == ".tsv":
        return ((line, text.split("\t")) for line, text in read_lines(path))
    return _csv_rows(path)


def _csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    reader = csv.reader((text + "\n" for _, text in read_lines(path)), strict=True)
    try:
        for cells in reader:
            yield reader.line_num, cells
    except csv.Error as problem:
        if "new-line character" in str(problem):
            raise OpencseError(
                f"{path}, line {reader.line_num}: a carriage return outside quotation marks",
                "Convert the line ends, for example with `tr '\\r' '\\n'`.",
            ) from None
        raise OpencseError(f"{path}, line {reader.line_num}: {problem}", "Correct the quoting.") from None


def _header(cells: Sequence[str], path: Path) -> list[str]:
    names = [cell.strip() for cell in cells]
    if (longest := max(map(len, names), default=0)) > _LONGEST_NAME:
        raise OpencseError(f"{path}: a column name of {longest:,} characters", "The first line must name the columns.")
    if twice := next((name for name, count in Counter(names).items() if name and count > 1), None):
        raise OpencseError(f"{path}: two columns are named '{twice}'", "Give each column a name of its own.")
    return names


def _named_rows(path: Path, rows: Iterable[tuple[int, list[str]]]) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield each row as a mapping from column names to cells."""
    header: list[str] | None = None
    for line, cells in rows:
        if header is None:
            header = _header(cells, path) if any(cell.strip() for cell in cells) else None
        elif len(cells) == len(header):
            yield line, dict(zip(header, cells, strict=True))
        elif not any(cell.strip() for cell in cells):
            yield line, {}
        else:
            raise OpencseError(
                f"{path}, line {line}: {len(cells)} cells, but the header has {len(header)} columns",
                "Give every row as many cells as the header (TSV has no quoting).",
            )


def _json_rows(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    for line, text in read_lines(path):
        yield line, _json_object(text, path, line) if text.strip() else {}


def _json_object(text: str, path: Path, line: int) -> Mapping[str, object]:
    row = json_object(text, f"{path}, line {line}", 'Each line reads {"text": "…"}.')
    if "\\u" in text:  # an escape is the only way to write half of a surrogate pair
        try:
            "".join(part for pair in row.items() for part in pair if isinstance(part, str)).encode()
        except UnicodeEncodeError:
            raise OpencseError(
                f"{path}, line {line}: holds half of a surrogate pair (\\ud800 to \\udfff), which is no character",
                "Write the character itself, or both halves.",
            ) from None
    return row
