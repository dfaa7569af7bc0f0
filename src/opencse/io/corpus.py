"""Reading raw text: one sentence per row, streamed from any of the usual file formats."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from opencse.errors import OpencseError
from opencse.io.tables import TABLES, ending, read_lines, read_table, table_columns

Row = tuple[str | None, ...]
FORMATS = ".txt, .jsonl, .csv, .tsv (each also .gz), .parquet, or a folder of Parquet files or saved by `datasets`"


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
    """Yield the named columns of every row, `None` where a cell is null or (outside `.txt`) empty.

    A `.txt` file has the one column `text`; its blank lines come as `None`.
    """
    path = Path(path)
    if not path.exists():
        raise OpencseError(f"{path}: no such file or folder", "Check the path.")
    kind = ending(path)
    if path.is_dir():
        yield from _read_folder(path, columns)
    elif kind == ".parquet":
        yield from _read_parquet([path], columns)
    elif kind == ".txt":
        _require(columns, ["text"], path)
        for _, line in read_lines(path):
            yield tuple(line if line.strip() else None for _ in columns)
    elif kind in TABLES:
        if names := table_columns(path):
            _require(columns, names, path)
        for number, row in read_table(path):
            yield tuple(_cell(row.get(c), path, number, c) for c in columns)
    else:
        raise OpencseError(f"{path}: unknown corpus format '{path.suffix}'", f"Known: {FORMATS}.")


def column_names(path: str | Path) -> list[str]:
    """The names of the columns of a corpus (`["text"]` for plain text)."""
    path = Path(path)
    if not path.exists():
        raise OpencseError(f"{path}: no such file or folder", "Check the path.")
    if path.is_dir() or ending(path) == ".parquet":
        import pyarrow.parquet as pq

        if path.is_dir() and (path / "state.json").exists():
            return list(_load_dataset(path).column_names)
        files = [path] if path.is_file() else _parquet_files(path)
        return list(pq.read_schema(files[0]).names)
    return ["text"] if ending(path) == ".txt" else table_columns(path)


def content_hash(path: str | Path) -> str:
    """A hash of the bytes of a file, or of the names and bytes of all files below a folder."""
    path = Path(path)
    digest = hashlib.blake2b(digest_size=16)
    files = [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.is_file())
    for file in files:
        if path.is_dir():
            digest.update(file.relative_to(path).as_posix().encode() + b"\0")
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


def _require(columns: Sequence[str], present: Sequence[str], path: Path) -> None:
    for column in columns:
        if column not in present:
            raise OpencseError(f"{path}: no column '{column}'", f"It has: {', '.join(present) or 'none'}.")


def _parquet_files(folder: Path) -> list[Path]:
    files = sorted(folder.glob("*.parquet"))
    if not files:
        raise OpencseError(f"{folder}: holds no Parquet file and was not saved by `datasets`", f"Known: {FORMATS}.")
    return files


def _read_folder(folder: Path, columns: Sequence[str]) -> Iterator[Row]:
    if (folder / "state.json").exists():
        data = _load_dataset(folder)
        _require(columns, data.column_names, folder)
        for number, record in enumerate(data.select_columns(list(columns)), 1):
            yield tuple(_cell(record[c], folder, number, c) for c in columns)
    else:
        yield from _read_parquet(_parquet_files(folder), columns)


def _load_dataset(folder: Path) -> Any:
    import datasets

    return datasets.load_from_disk(str(folder))


def _read_parquet(files: Sequence[Path], columns: Sequence[str]) -> Iterator[Row]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    for path in files:
        try:
            file = pq.ParquetFile(path)
        except pa.ArrowInvalid as error:
            raise OpencseError(f"{path}: not a Parquet file ({error})", "Write it again.") from None
        _require(columns, file.schema_arrow.names, path)
        for column in columns:
            if not pa.types.is_string(kind := file.schema_arrow.field(column).type) and not pa.types.is_large_string(
                kind
            ):
                raise OpencseError(f"{path}: column '{column}' holds {kind}, not text")
        number = 0
        for batch in file.iter_batches(batch_size=8192, columns=list(columns)):
            data = [batch.column(c).to_pylist() for c in columns]
            for row in zip(*data, strict=True):
                number += 1
                yield tuple(_cell(value, path, number, c) for value, c in zip(row, columns, strict=True))


def chunks(rows: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Lists of `size` rows; the last may be shorter."""
    iterator = iter(rows)
    while chunk := list(islice(iterator, size)):
        yield chunk
