"""Lines and rows of text files: strict, streamed, and wrong ones named by line."""

from __future__ import annotations

import csv
import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from opencse.errors import OpencseError

TABLES = (".csv", ".tsv", ".jsonl")
"""The formats of `read_table`; each may end in `.gz`."""


def ending(path: Path) -> str:
    """The format by the file's name, without `.gz`: `.tsv` for `a.b.TSV.gz`."""
    suffixes = [suffix.lower() for suffix in path.suffixes]
    return next((suffix for suffix in reversed(suffixes) if suffix != ".gz"), "")


def read_lines(path: Path, encoding: str = "utf-8") -> Iterator[tuple[int, str]]:
    r"""Yield `(line number, text)` of a file, plain or `.gz`; lines end at `\n` (or `\r\n`) and nowhere else.

    Other Unicode separators belong to the sentence. A byte order mark is dropped.

    Raises:
        OpencseError: The file is missing, is no whole gzip file, or a line is not in this encoding.
    """
    line = 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            for line, raw in enumerate(file, start=1):
                text = raw.decode(encoding).removesuffix("\n").removesuffix("\r")
                yield line, text.removeprefix("\ufeff") if line == 1 else text
    except FileNotFoundError:
        raise OpencseError(f"{path} does not exist", "Check the path.") from None
    except UnicodeDecodeError as problem:
        raise OpencseError(
            f"{path}, line {line}: not valid UTF-8 ({problem.reason} at byte {problem.start})",
            "Convert the file, for example with `iconv -f latin1 -t utf-8`.",
        ) from None
    except (gzip.BadGzipFile, EOFError) as problem:
        raise OpencseError(
            f"{path}, after line {line}: not a complete gzip file ({problem})", "Copy or compress it again."
        ) from None
    except OSError as problem:
        raise OpencseError(f"{path}, after line {line}: {problem}", "Check the file.") from None


def read_table(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Yield `(line number, cells by column name)` of a `.csv`, `.tsv` or `.jsonl` file, plain or `.gz`.

    CSV is quoted as usual (RFC 4180). **TSV has no quoting**: a quotation mark is a character. The first row of both
    that is not blank names the columns. A blank line comes as no cells at all.

    Raises:
        OpencseError: As `read_lines`; or the format is another, a row has too many or too few cells, or is no JSON
            object.
    """
    kind = ending(path)
    if kind == ".jsonl":
        yield from _json_rows(path)
    elif kind == ".tsv":
        yield from _named_rows(path, ((line, text.split("\t")) for line, text in read_lines(path)))
    elif kind == ".csv":
        yield from _named_rows(path, _csv_rows(path))
    else:
        raise OpencseError(f"{path}: cannot tell the format", f"Use one of {', '.join(TABLES)}, each also as .gz.")


def table_columns(path: Path) -> list[str]:
    """Names of the columns: the header, or the keys of the first object; none in an empty file."""
    line, first = next(((line, text) for line, text in read_lines(path) if text.strip()), (0, ""))
    if not line:
        return []
    if ending(path) == ".jsonl":
        return list(_json_object(first, path, line))
    cells = next(csv.reader([first])) if ending(path) == ".csv" else first.split("\t")
    return [cell.strip() for cell in cells]


def _csv_rows(path: Path) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader((text + "\n" for _, text in read_lines(path)), strict=True)
    try:
        for cells in reader:
            yield reader.line_num, cells
    except csv.Error as problem:
        raise OpencseError(f"{path}, line {reader.line_num}: {problem}", "Mend the quoting.") from None


def _named_rows(path: Path, rows: Iterable[tuple[int, list[str]]]) -> Iterator[tuple[int, Mapping[str, object]]]:
    """Name each row's cells by the header."""
    header: list[str] | None = None
    for line, cells in rows:
        if header is None:
            header = [cell.strip() for cell in cells] if any(cell.strip() for cell in cells) else None
        elif len(cells) == len(header):
            yield line, dict(zip(header, cells, strict=True))
        elif not any(cell.strip() for cell in cells):
            yield line, {}
        else:
            raise OpencseError(
                f"{path}, line {line}: {len(cells)} cells, but the header names {len(header)} columns",
                "Give every row as many cells as the header (a TSV file knows no quoting).",
            )


def _json_rows(path: Path) -> Iterator[tuple[int, Mapping[str, object]]]:
    for line, text in read_lines(path):
        yield line, _json_object(text, path, line) if text.strip() else {}


def _json_object(text: str, path: Path, line: int) -> Mapping[str, object]:
    try:
        row = json.loads(text)
    except json.JSONDecodeError as problem:
        raise OpencseError(f"{path}, line {line}: not JSON ({problem.msg})", "Each line holds one object.") from None
    if not isinstance(row, dict):
        raise OpencseError(f"{path}, line {line}: not a JSON object", 'Each line reads {"text": "…"}.')
    return row
