"""Reading of Arrow data: Parquet files, and folders saved by `datasets`, checked before anything else uses them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from opencse.foundation.errors import OpencseError
from opencse.foundation.files import replaced_file
from opencse.foundation.reading import (
    FORMATS,
    existing_path,
    read_json,
    regular_file,
    require_columns,
    translate_errors,
)

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 8192
_REMEDY = "Write or copy it again."


def arrow_files(path: Path) -> list[Path]:
    """Return a Parquet file, the files of a folder of them by name, or those of a folder saved by `datasets`.

    Raises:
        OpencseError: The folder is neither, or cannot be read.
    """
    if not path.is_dir():
        return [path]
    if saved_by_datasets(path):
        return _files_of_datasets(path)
    with translate_errors(path, "cannot be read", "Check the folder."):
        files = sorted(path.glob("*.parquet"))
    if not files:
        raise OpencseError(f"{path}: holds no Parquet file and was not saved by `datasets`", f"Known: {FORMATS}.")
    return files


def arrow_rows(path: Path, columns: Sequence[str]) -> Iterator[tuple[Path, int, Sequence[object]]]:
    """Yield the file, the number and the named columns of every row of `arrow_files`.

    Raises:
        OpencseError: A file is incomplete, a column is missing, a page is damaged, or a text is not UTF-8.
    """
    for file in arrow_files(path):
        _layout(file, columns)
        rows = (
            row
            for batch in _batches(file, columns)
            for row in zip(*(batch.column(column).to_pylist() for column in columns), strict=True)
        )
        yield from ((file, number, row) for number, row in enumerate(rows, 1))


def parquet_schema(path: str | Path) -> pa.Schema:
    """Return the schema of a Parquet file, or of an Arrow file of `datasets`, with its metadata.

    Raises:
        OpencseError: The file is missing or incomplete, or two columns share a name.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = regular_file(path)
    with _arrow(path):
        schema = pa.ipc.open_stream(path).schema if path.suffix == ".arrow" else pq.read_schema(path)
    if twice := sorted({name for name in schema.names if schema.names.count(name) > 1}):
        raise OpencseError(f"{path}: two columns are named '{twice[0]}'", "Give each column a name of its own.")
    return schema


def parquet_metadata(path: str | Path) -> dict[bytes, bytes]:
    """Return the metadata of a Parquet file; empty if the file is missing or incomplete."""
    try:
        return dict(parquet_schema(path).metadata or {})
    except OpencseError:
        return {}


def write_texts(path: Path, columns: Mapping[str, Sequence[str | None]], made_from: str = "") -> None:
    """Write columns of text as a Parquet file in one step, with a note of what they were made from (`is_made_from`)."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(name, pa.string()) for name in columns], {"made_from": made_from} if made_from else None)
    with replaced_file(path) as temporary:
        pq.write_table(pa.table(dict(columns), schema=schema), temporary, write_page_checksum=True)


def is_made_from(path: Path, made_from: str) -> bool:
    """Return whether a file was written by `write_texts` with this note."""
    return path.is_file() and parquet_metadata(path).get(b"made_from") == made_from.encode()


def read_parquet(path: str | Path, columns: Sequence[str] | None = None) -> pa.Table:
    """Return all files of `arrow_files` as one table.

    Raises:
        OpencseError: A file is incomplete, lacks a column, or has other columns than the first.
    """
    import pyarrow as pa

    path = existing_path(path)
    tables = [pa.Table.from_batches(list(_batches(f, columns)), _layout(f, columns)) for f in arrow_files(path)]
    with _arrow(path):
        return pa.concat_tables(tables)


def saved_by_datasets(folder: Path) -> bool:
    """Return whether a folder was saved by `datasets`."""
    return (folder / "state.json").exists()


def _files_of_datasets(folder: Path) -> list[Path]:
    """Return the Arrow files of a folder saved by `datasets`; files outside of the folder are refused."""
    state = folder / "state.json"
    files = read_json(state, _REMEDY).get("_data_files")
    if not isinstance(files, list) or not files:
        raise OpencseError(f"{state}: names no data files", _REMEDY)
    for number, entry in enumerate(files):
        name = entry.get("filename") if isinstance(entry, dict) else None
        if not isinstance(name, str) or Path(name).name != name or Path(name).suffix != ".arrow":
            raise OpencseError(f"{state}: data file {number} has no plain file name", _REMEDY)
    return [regular_file(folder / entry["filename"]) for entry in files]


def _batches(path: Path, columns: Sequence[str] | None) -> Iterator[pa.RecordBatch]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    with _arrow(path):
        if path.suffix == ".arrow":
            batches: Iterator[pa.RecordBatch] = iter(pa.ipc.open_stream(path))
        else:
            file = pq.ParquetFile(regular_file(path), page_checksum_verification=True)
            batches = file.iter_batches(batch_size=_ROWS, columns=None if columns is None else list(columns))
    while True:
        with _arrow(path):
            if (batch := next(batches, None)) is None:
                return
            batch.validate(full=True)  # offsets inside the data, and texts in UTF-8
        yield batch


def _layout(path: Path, columns: Sequence[str] | None) -> pa.Schema:
    import pyarrow as pa

    schema = parquet_schema(path)
    if columns is None:
        return schema
    require_columns(columns, schema.names, path)
    return pa.schema([schema.field(column) for column in columns], schema.metadata)


@contextlib.contextmanager
def _arrow(path: Path) -> Iterator[None]:
    import pyarrow as pa

    with translate_errors(path, "not a whole Parquet or Arrow file", _REMEDY, pa.ArrowException):
        yield
