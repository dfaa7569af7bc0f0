"""Streamed, strict reading of tables (lines, CSV, TSV, JSON Lines, Parquet).

Errors name the file and the line.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import gzip
import io
import math
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opencse.foundation.errors import OpencseError
from opencse.foundation.files import replaced
from opencse.foundation.progress import note_once
from opencse.foundation.reading import (
    FORMATS,
    LONGEST_LINE,
    FileTally,
    check_characters,
    check_is_text,
    error_reason,
    file_extension,
    is_hidden,
    json_object,
    open_tallied,
    regular_file,
    require_columns,
    translate_errors,
)

if TYPE_CHECKING:
    import pyarrow as pa


TABLES = (".csv", ".tsv", ".jsonl")
"""The formats of `read_table`; each may end in `.gz`."""

_UNPACKED = 8 * 2**20
# How many times larger than its file the text of a `.gz` may be, beyond the first bytes.
_RATIO = 100
# Bytes of the unpacked text that are compared with the size of the file.
_CHECKED = 256 * 2**20
_SEPARATORS = (",", ";", "\t", "|")
# The separator is found by this many lines.
_SNIFFED = 50
_GZIP = b"\x1f\x8b"
_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def column_rows(
    path: Path, columns: Sequence[str], tally: FileTally | None = None
) -> Iterator[tuple[Path, int, Sequence[object]]]:
    """Yield file, row number and named columns of every row of a table or a folder of tables.

    A `.txt` file has one column, `text`.

    Args:
        path: A file that `read_table` reads, a `.txt` file, a Parquet file or a folder of them.
        columns: Names of the columns.
        tally: Filled in after the last row; stays empty for Parquet files, which are not read from
            beginning to end.

    Raises:
        OpencseError: As `table_columns` and `read_table`; or a column is missing.
    """
    present = table_columns(path)
    if not _is_parquet(path):
        # An empty file has neither columns nor rows.
        if present:
            require_columns(columns, present, path)
        total = 0
        without = 0
        keys = ""
        for line, row in read_table(path, tally):
            if row:
                total += 1
            if row and columns and columns[0] not in row:
                without += 1
                keys = keys or ", ".join(map(repr, row))
            yield path, line, [row.get(column) for column in columns]
        if without:
            # Only records of JSON differ in their keys.
            note_once(
                f"warning: {path}: {without:,} of {total:,} records have no {columns[0]!r} and are "
                f"left out; the first of them has {keys:.200}"
            )
        return
    for file in _parquet_files(path):
        require_columns(columns, parquet_schema(file).names, file)
        number = 0
        for batch in _batches(file, columns):
            cells = [column.to_pylist() for column in batch.columns]
            for row_cells in zip(*cells, strict=True):
                number += 1
                yield file, number, row_cells


def _is_parquet(path: Path) -> bool:
    return path.is_dir() or file_extension(path) == ".parquet"


def read_lines(
    path: Path, encoding: str = "utf-8", tally: FileTally | None = None
) -> Iterator[tuple[int, str]]:
    r"""Yield `(line number, text)` of a file, plain or `.gz`; lines end at `\n` or `\r\n`.

    Other Unicode line separators are part of the text. A byte order mark is dropped; a UTF-16 mark
    selects that encoding.

    Args:
        path: The file.
        encoding: Its encoding.
        tally: Filled in after the last line; of a `.gz` file, with its packed bytes.

    Raises:
        OpencseError: The path is missing, not a regular file, or an incomplete gzip file; or a line
            is not in this encoding, is longer than `LONGEST_LINE`, or has control characters
            (`check_characters`; not in Latin-1).
    """
    line = 0
    wide = False
    path = regular_file(path)
    compressed = _is_compressed(path)
    try:
        if compressed:
            _check_packing(path)
        with _opened(path, tally) as file:
            first = file.peek(16)[:16]
            check_is_text(path, first)
            wide = first[:2] in _UTF16
            lines: Any = file
            if wide:
                lines = io.TextIOWrapper(file, "utf-16", newline="\n")
            while raw := lines.readline(LONGEST_LINE + 1):
                line += 1
                if len(raw) > LONGEST_LINE:
                    raise OpencseError(
                        f"{path}, line {line}: longer than {LONGEST_LINE >> 20} MiB",
                        "Write one sentence or record per line, each ended by a line feed.",
                    )
                text = raw if wide else raw.decode(encoding)
                text = text.removesuffix("\n").removesuffix("\r")
                if encoding == "utf-8":
                    check_characters(text, path, line)
                if line == 1:
                    text = text.removeprefix("\ufeff")
                yield line, text
    except UnicodeDecodeError as problem:
        # UTF-16 is decoded before the line is counted.
        wrong_line = line + 1 if wide else line
        name = "UTF-16" if wide else "UTF-8"
        remedy = "If Windows or Excel wrote it, convert it with `iconv -f cp1252 -t utf-8`."
        if wide:
            remedy = "Save it as UTF-8."
        raise OpencseError(
            f"{path}, line {wrong_line}: not valid {name} ({problem.reason} at byte "
            f"{problem.start})",
            remedy,
        ) from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as problem:
        raise OpencseError(
            f"{path}, after line {line}: not a complete gzip file ({problem})",
            "Copy or compress it again.",
        ) from None
    except OSError as problem:
        raise OpencseError(
            f"{path}, after line {line}: {error_reason(problem)}", "Check the file."
        ) from None


def text_lines(path: Path, tally: FileTally | None = None) -> Iterator[tuple[int, str]]:
    r"""Yield `(line number, text)` of a `.txt` file, whose lines may also end at `\r`, as on old Macs.

    Raises:
        OpencseError: As `read_lines`.
    """
    for line, text in read_lines(path, tally=tally):
        for part in text.split("\r"):
            yield line, part


def _check_packing(path: Path) -> None:
    """Refuse a `.gz` file that is packed as no text is, such as 500 million blank lines in 500 KB.

    Raises:
        OpencseError: Its beginning unpacks to more than `_RATIO` times its size.
    """
    most = _UNPACKED + _RATIO * path.stat().st_size
    size = 0
    with gzip.open(path) as file:
        while size < _CHECKED and (block := file.read(2**20)):
            size += len(block)
            if size > most:
                raise OpencseError(
                    f"{path}: unpacks to more than {_RATIO} times its size",
                    "Unpack it, and check what is in it.",
                )


@contextlib.contextmanager
def _opened(path: Path, tally: FileTally | None = None) -> Iterator[Any]:
    """Open a file for reading bytes, a gzip file uncompressed."""
    with contextlib.ExitStack() as opened:
        file: Any = path.open("rb") if tally is None else open_tallied(path, tally)
        opened.enter_context(file)
        if _is_compressed(path):
            file = opened.enter_context(gzip.open(file))
        yield file


def _is_compressed(path: Path) -> bool:
    """Return whether a file is a gzip file, by its name or its first bytes."""
    if path.suffix.lower() == ".gz":
        return True
    with translate_errors(path, "cannot be read", "Check the file."), path.open("rb") as file:
        return file.read(len(_GZIP)) == _GZIP


def table_kind(path: Path) -> str:
    """Return the extension by which a file is read: its own, but `.tsv` for a table that Excel exported as `.txt`.

    Excel's "Unicode text" is UTF-16 with the same number of tabs, at least one, in each line.
    """
    kind = file_extension(path)
    if kind == ".txt" and path.is_file() and _is_wide(path):
        lines = [text for _, text in islice(read_lines(path), _SNIFFED) if text.strip()]
        tabs = {len(cells) - 1 for cells in csv.reader(lines, delimiter="\t")}
        if len(tabs) == 1 and tabs.pop() > 0:
            return ".tsv"
    return kind


def _is_wide(path: Path) -> bool:
    with contextlib.suppress(OSError, EOFError, zlib.error), _opened(path) as file:
        return file.peek(2)[:2] in _UTF16
    return False  # `read_lines` reports what is wrong with it


def read_table(
    path: Path, tally: FileTally | None = None
) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield `(line number, cells by column name)` of a text table, plain or `.gz`.

    The formats are `.csv`, `.tsv`, `.jsonl` and `.txt`.

    CSV is quoted as in RFC 4180, and separated by commas, semicolons, tabs or bars: whichever gives
    all rows the same number of cells; a first line `sep=;`, as Excel writes it, decides. **TSV has
    no quoting**: a quotation mark is an ordinary character, unless the cells are quoted as Excel
    quotes them, with doubled marks inside. In both, the first row that is not blank names the
    columns. A blank line yields an empty mapping.

    Args:
        path: The file.
        tally: Filled in after the last row.

    Raises:
        OpencseError: As `read_lines`; or the format is unknown, a row has too many or too few
            cells, a quotation mark is not closed, or a line is not a JSON object.
    """
    kind = table_kind(path)
    if kind == ".jsonl":
        yield from _json_rows(path, tally)
    elif kind == ".txt":
        yield from ((line, {"text": text}) for line, text in text_lines(path, tally))
    elif kind in TABLES:
        yield from _named_rows(path, _cells(path, tally))
    else:
        raise OpencseError(
            f"{path}: cannot tell the format", f"Use one of {', '.join(TABLES)}, each also as .gz."
        )


def table_rows(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield `(row number, cells by column name)` of a text table, or of a Parquet file or a folder of them.

    Raises:
        OpencseError: As `read_table` and `table_columns`.
    """
    if not _is_parquet(path):
        yield from read_table(path)
        return
    names = table_columns(path)
    for _, number, cells in column_rows(path, names):
        yield number, dict(zip(names, cells, strict=True))


def table_columns(path: Path) -> list[str]:
    """Return the names of the columns; empty for an empty file.

    They are the header, or the keys of the first JSON object.

    Args:
        path: As for `column_rows`.

    Raises:
        OpencseError: As `read_lines`, of the first lines; or a Parquet file is missing or
            incomplete, or two columns share a name.
    """
    if _is_parquet(path):
        return list(parquet_schema(_parquet_files(path)[0]).names)
    if table_kind(path) == ".txt":
        # Finds a file without line ends before all of it is read.
        next(read_lines(path), None)
        return ["text"]
    if file_extension(path) == ".jsonl":
        for _, row in _json_rows(path):
            if row:
                return list(row)
        return []
    for _, cells in _cells(path):
        if _has_text(cells):
            names = _header(cells, path)
            _note_sentences(names, path)
            return names
    return _header([], path)


def _note_sentences(names: Sequence[str], path: Path) -> None:
    """Note it if the name of a column looks like a sentence."""
    for name in names:
        if _is_sentence(name):
            note_once(
                f"{path}: its first row is read as names of columns, also {name[:60]!r}; if that "
                "is a sentence, put a row with names, such as `text`, above it"
            )
            return


def _is_sentence(name: str) -> bool:
    """Return whether the name of a column looks like a sentence: several words, and a final mark or five of them."""
    words = name.split()
    return len(words) > 4 or (len(words) > 1 and name.rstrip("\"'”’»").endswith((".", "!", "?")))


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
        raise OpencseError(
            f"{path}, line {line}: score {cell!r} is not a number",
            "Write it like 4.5 or drop the row.",
        )
    return value


def require_text(cell: object, column: str, path: Path, line: int) -> str:
    """Return the text in a cell.

    Raises:
        OpencseError: It is not a string, or blank; the message has file and line.
    """
    if not isinstance(cell, str):
        raise OpencseError(f"{path}, line {line}: {column} is {cell!r}, not text", "Give a string.")
    if not cell.strip():
        raise OpencseError(
            f"{path}, line {line}: {column} is empty", "Give a text or drop the line."
        )
    return cell


def _has_text(cells: Sequence[str]) -> bool:
    return any(cell.strip() for cell in cells)


def _cells(path: Path, tally: FileTally | None = None) -> Iterator[tuple[int, list[str]]]:
    if table_kind(path) == ".tsv":
        if _has_excel_quotes(path):
            note_once(f"{path}: its quoted cells are read as Excel writes them")
            return _quoted_rows(path, "\t", tally)
        return ((line, text.split("\t")) for line, text in read_lines(path, tally=tally))
    return _quoted_rows(path, _separator(path), tally)


def _has_excel_quotes(path: Path) -> bool:
    """Return whether the cells of a TSV file are quoted: all names of columns, or a cell with marks inside.

    Sentences that merely begin with a quotation mark are no such cells.
    """
    lines = [text + "\n" for _, text in islice(read_lines(path), _SNIFFED)]
    rows = [text.rstrip("\n").split("\t") for text in lines]
    named = next((cells for cells in rows if _has_text(cells)), [])
    names_are_quoted = bool(named) and all(_QUOTED_NAME.fullmatch(cell) for cell in named)
    if not names_are_quoted and not any(_doubled(cell) for cells in rows for cell in cells):
        return False
    widths = set()
    try:
        for cells in csv.reader(lines, delimiter="\t", strict=True):
            if any(cells):
                widths.add(len(cells))
    except csv.Error as error:
        return "unexpected end of data" in str(error) and len(widths) == 1
    return len(widths) == 1


_QUOTED_NAME = re.compile(r'"[\w .-]{1,60}"')


def _doubled(cell: str) -> bool:
    """Return whether a cell is quoted and has only doubled quotation marks inside, at least one pair of them."""
    if len(cell) < 2 or not (cell.startswith('"') and cell.endswith('"')):
        return False
    inside = cell[1:-1]
    return '""' in inside and '"' not in inside.replace('""', "")


def _quoted_rows(
    path: Path, separator: str, tally: FileTally | None = None
) -> Iterator[tuple[int, list[str]]]:
    """Yield the number of the first line of each row, and its cells."""
    csv.field_size_limit(max(csv.field_size_limit(), LONGEST_LINE))
    lines: Iterator[str] = (text + "\n" for _, text in read_lines(path, tally=tally))
    line = 1
    first = next(lines, "")
    if _stated_separator(first) is None:
        lines = chain([first] if first else [], lines)
    else:
        line = 2  # the line `sep=;` is no row
    before = line - 1
    reader = csv.reader(lines, delimiter=separator, strict=True)
    try:
        for cells in reader:
            last = reader.line_num + before
            if last > line:
                span = f"lines {line} to {last}"
                note_once(
                    f"{path}: {span} are one row because of their quotation marks; "
                    "if that is wrong, correct the quoting"
                )
            yield line, cells
            line = last + 1
    except csv.Error as problem:
        if "new-line character" in str(problem):
            raise OpencseError(
                f"{path}, line {line}: a carriage return outside quotation marks",
                "Convert the line ends with `tr '\\r' '\\n'`.",
            ) from None
        raise OpencseError(
            f"{path}, line {line}: a quotation mark in this row is not closed, or not doubled "
            f"({problem}; read up to line {reader.line_num + before})",
            "Correct the quoting.",
        ) from None


def _stated_separator(line: str) -> str | None:
    """Return the separator of a line such as `sep=;`, with which Excel begins a file; None for any other line."""
    text = line.strip("\r\n").strip('"')
    return text[4] if len(text) == 5 and text.lower().startswith("sep=") else None


def _separator(path: Path) -> str:
    """Return the separator that a CSV file states, or the one that gives rows equally many cells."""
    lines = [text + "\n" for _, text in islice(read_lines(path), _SNIFFED)]
    stated = _stated_separator(lines[0]) if lines else None
    if stated is not None:
        return stated

    def fit(separator: str) -> tuple[bool, int]:
        widths: list[int] = []
        # A quoted cell may continue past the sniffed lines, or be broken.
        with contextlib.suppress(csv.Error):
            for cells in csv.reader(lines, delimiter=separator, strict=True):
                if any(cells):
                    widths.append(len(cells))
        header = widths[0] if widths else 0
        all_equal = len(set(widths)) == 1
        return header > 1 and all_equal, header

    return max(_SEPARATORS, key=fit)


def _header(cells: Sequence[str], path: Path) -> list[str]:
    names = [cell.strip() for cell in cells]
    if len(names) == 1 and file_extension(path) == ".tsv":
        other_separator = any(mark in names[0] for mark in ",;|")
        if other_separator:
            raise OpencseError(
                f"{path}: no tab in its header, {names[0]!r}",
                "Separate by tabs, or name the file .csv.",
            )
    for name, count in Counter(names).items():
        if name and count > 1:
            raise _duplicate_column(path, name)
    return names


def _duplicate_column(path: Path, name: str) -> OpencseError:
    return OpencseError(f"{path}: two columns are named '{name}'", "Give each column its own name.")


def _named_rows(
    path: Path, rows: Iterable[tuple[int, list[str]]]
) -> Iterator[tuple[int, Mapping[str, object]]]:
    header: list[str] | None = None
    for line, cells in rows:
        if header is None:
            if _has_text(cells):
                header = _header(cells, path)
        elif len(cells) == len(header):
            yield line, dict(zip(header, cells, strict=True))
        elif not _has_text(cells):
            yield line, {}
        else:
            raise OpencseError(
                f"{path}, line {line}: {len(cells)} cells, but the header has {len(header)} columns",
                "Give every row as many cells as the header (TSV has no quoting).",
            )


def _json_rows(
    path: Path, tally: FileTally | None = None
) -> Iterator[tuple[int, Mapping[str, object]]]:
    for line, text in read_lines(path, tally=tally):
        row: Mapping[str, object] = {}
        if text.strip():
            row = json_object(text, f"{path}, line {line}", 'Each line reads {"text": "…"}.')
        # An escape may spell a character that the check of the raw line could not see.
        if "\\u" in text:
            strings = []
            for pair in row.items():
                strings += [part for part in pair if isinstance(part, str)]
            check_characters("".join(strings), path, line)
        yield line, row


MADE_FROM = b"made_from"
"""Key of the note in a table of `write_texts`."""
VIEWS_HEADER = b"opencse.text.views.registry"
"""Key of the header in a file of built views."""
_ROWS = 8192
# Bytes of the texts of a column that are in memory at once.
_TOGETHER = 256 * 2**20
_REMEDY = "Write or copy it again."


def parquet_schema(path: str | Path) -> pa.Schema:
    """Return the schema of a Parquet file, with its metadata.

    Raises:
        OpencseError: The file is missing or incomplete, or two columns share a name.
    """
    import pyarrow.parquet as pq

    path = regular_file(path)
    with _parquet_errors(path):
        schema = pq.read_schema(path)
    repeated = sorted(name for name in schema.names if schema.names.count(name) > 1)
    if repeated:
        raise _duplicate_column(path, repeated[0])
    return schema


def parquet_metadata(path: str | Path) -> dict[bytes, bytes]:
    """Return the metadata of a Parquet file; empty if the file is missing or incomplete."""
    try:
        return dict(parquet_schema(path).metadata or {})
    except OpencseError:
        return {}


def write_texts(
    path: Path, columns: Mapping[str, Sequence[str | None]], made_from: str = ""
) -> None:
    """Write columns of text as a Parquet file in one step.

    The file notes what it was made from, which `is_made_from` checks.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    metadata = {MADE_FROM: made_from.encode()}
    schema = pa.schema([(name, pa.string()) for name in columns], metadata)
    with replaced(path) as temporary:
        pq.write_table(pa.table(dict(columns), schema=schema), temporary, write_page_checksum=True)


def is_made_from(path: Path, made_from: str) -> bool:
    """Return whether a file was written by `write_texts` with this note."""
    return parquet_metadata(path).get(MADE_FROM) == made_from.encode()


def read_parquet(path: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Return a Parquet file as a table.

    Raises:
        OpencseError: The file is missing or incomplete, or lacks a column.
    """
    import pyarrow as pa

    schema = parquet_schema(path)
    if columns is not None:
        require_columns(columns, schema.names, path)
        schema = pa.schema([schema.field(column) for column in columns], schema.metadata)
    return pa.Table.from_batches(list(_batches(path, schema.names)), schema)


def parquet_files(folder: Path) -> list[Path]:
    """Return the Parquet files of a folder by name, without hidden ones; of a cloned data set, those in its folders.

    If such a data set has parts, named `train…` and `test…` or `validation…`, only the training part
    is read.
    """
    top = [file for file in sorted(folder.glob("*.parquet")) if not is_hidden(file.name)]
    if top:
        return top
    below = []
    for file in sorted(folder.rglob("*.parquet")):
        if not any(is_hidden(part) for part in file.relative_to(folder).parts):
            below.append(file)
    train = [file for file in below if file.name.startswith("train")]
    if train and len(train) < len(below):
        note_once(f"{folder}: only the training part is read, {len(train)} of {len(below)} files")
        return train
    return below


def _parquet_files(path: Path) -> list[Path]:
    """Return a Parquet file, or the files of a folder of them by name."""
    if not path.is_dir():
        return [path]
    with translate_errors(path, "cannot be read", "Check the folder."):
        files = parquet_files(path)
    if not files:
        raise OpencseError(f"{path}: holds no Parquet file", f"Known: {FORMATS}.")
    return files


def _batches(path: Path, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a Parquet file, after checking checksums, offsets, UTF-8 and lengths."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = parquet_schema(path)
    texts = [name for name in columns if pa.types.is_string(schema.field(name).type)]
    with _parquet_errors(path):
        # A dictionary holds each text once: a long one is seen before it is copied for each row.
        file = pq.ParquetFile(path, page_checksum_verification=True, read_dictionary=texts)
        for batch in file.iter_batches(batch_size=_ROWS, columns=list(columns)):
            batch.validate(full=True)
            yield from _decoded(path, batch.select(columns))


def _decoded(path: Path, batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """Yield a batch with plain texts, in parts that take little memory.

    Raises:
        OpencseError: A text is longer than `LONGEST_LINE`.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    longest = 1
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if not pa.types.is_dictionary(column.type):
            continue
        length = pc.max(pc.binary_length(column.dictionary)).as_py() or 0
        if length > LONGEST_LINE:
            raise OpencseError(
                f"{path}: column '{name}' has a text of {length >> 20} MiB, more than {LONGEST_LINE >> 20}",
                "Split it.",
            )
        longest = max(longest, length)
    rows = max(1, _TOGETHER // longest)
    for start in range(0, len(batch), rows):
        part = batch.slice(start, rows)
        columns = [
            column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            for column in part.columns
        ]
        fields = [
            field.with_type(column.type)
            for field, column in zip(batch.schema, columns, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=pa.schema(fields))


@contextlib.contextmanager
def _parquet_errors(path: Path) -> Iterator[None]:
    import pyarrow as pa

    with translate_errors(path, "not a complete Parquet file", _REMEDY, pa.ArrowException):
        yield
