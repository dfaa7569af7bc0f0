"""Reading raw text: one sentence per row, streamed from any of the usual file formats."""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

from opencse.errors import OpencseError

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
        raise OpencseError(f"{path}: no such file or folder", "Check the path of the corpus.")
    if path.is_dir():
        yield from _read_folder(path, columns)
        return
    suffix = "".join(path.suffixes[-2:]) if path.suffix == ".gz" else path.suffix
    kind = suffix.removesuffix(".gz")
    if kind == ".parquet":
        yield from _read_parquet([path], columns)
    elif kind in _LINE_READERS:
        with _open(path) as raw:
            yield from _LINE_READERS[kind](_decoded_lines(raw, path), path, columns)
    else:
        raise OpencseError(f"{path}: unknown corpus format '{path.suffix}'", f"Known: {FORMATS}.")


def column_names(path: str | Path) -> list[str]:
    """The names of the columns of a corpus (`["text"]` for plain text)."""
    path = Path(path)
    if not path.exists():
        raise OpencseError(f"{path}: no such file or folder", "Check the path of the corpus.")
    if path.is_dir() or path.suffix == ".parquet":
        import pyarrow.parquet as pq

        if path.is_dir() and (path / "state.json").exists():
            return list(_load_dataset(path).column_names)
        files = [path] if path.is_file() else _parquet_files(path)
        return list(pq.read_schema(files[0]).names)
    name = path.name.removesuffix(".gz")
    if name.endswith(".txt"):
        return ["text"]
    with _open(path) as raw:
        first = next(_decoded_lines(raw, path), "")
    if name.endswith(".jsonl"):
        return list(_json_object(first, path, 1)) if first.strip() else []
    return next(csv.reader([first], delimiter="\t" if name.endswith(".tsv") else ","), [])


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


def _open(path: Path) -> BinaryIO:
    return gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb")  # type: ignore[return-value]


def _decoded_lines(raw: BinaryIO, path: Path) -> Iterator[str]:
    """Lines split on LF only: other Unicode separators belong to the sentence."""
    try:
        for number, line in enumerate(raw, 1):
            try:
                text = line.decode("utf-8")
            except UnicodeDecodeError as error:
                raise OpencseError(
                    f"{path}, line {number}: not valid UTF-8 ({error.reason} at byte {error.start})",
                    "Convert the file, for example with `iconv -f latin1 -t utf-8`.",
                ) from None
            yield text.removesuffix("\n").removesuffix("\r").removeprefix("\ufeff" if number == 1 else "")
    except (gzip.BadGzipFile, EOFError) as error:
        raise OpencseError(f"{path}: not a complete gzip file ({error})", "Copy or compress it again.") from None


def _read_txt(lines: Iterator[str], path: Path, columns: Sequence[str]) -> Iterator[Row]:
    _require(columns, ["text"], path)
    for line in lines:
        yield tuple(line if line.strip() else None for _ in columns)


def _read_jsonl(lines: Iterator[str], path: Path, columns: Sequence[str]) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            yield (None,) * len(columns)
            continue
        record = _json_object(line, path, number)
        if number == 1:
            _require(columns, list(record), path)
        yield tuple(_cell(record.get(c), path, number, c) for c in columns)


def _read_csv(lines: Iterator[str], path: Path, columns: Sequence[str]) -> Iterator[Row]:
    reader = csv.reader((line + "\n" for line in lines), strict=True)
    yield from _read_table(reader, path, columns)


def _read_tsv(lines: Iterator[str], path: Path, columns: Sequence[str]) -> Iterator[Row]:
    # Tab-separated text is read without quoting: a quotation mark is part of the sentence.
    yield from _read_table((line.split("\t") for line in lines), path, columns)


def _read_table(rows: Iterator[list[str]], path: Path, columns: Sequence[str]) -> Iterator[Row]:
    header = next(rows, None)
    if header is None:
        return
    _require(columns, header, path)
    picks = [header.index(c) for c in columns]
    number = 1
    try:
        for number, row in enumerate(rows, 2):
            if len(row) != len(header):
                if not any(cell.strip() for cell in row):
                    yield (None,) * len(columns)
                    continue
                raise OpencseError(
                    f"{path}, row {number}: {len(row)} cells where the header has {len(header)}", "Mend this row."
                )
            yield tuple(row[i] if row[i].strip() else None for i in picks)
    except csv.Error as error:
        raise OpencseError(f"{path}, after row {number}: {error}", "Mend the quoting of this row.") from None


_LINE_READERS = {".txt": _read_txt, ".jsonl": _read_jsonl, ".csv": _read_csv, ".tsv": _read_tsv}


def _json_object(line: str, path: Path, number: int) -> dict[str, Any]:
    try:
        record = json.load(io.StringIO(line))
    except json.JSONDecodeError as error:
        raise OpencseError(f"{path}, line {number}: not JSON ({error.msg})", "Each line holds one object.") from None
    if not isinstance(record, Mapping):
        raise OpencseError(f"{path}, line {number}: not a JSON object", 'Each line reads {"text": "…"}.')
    return dict(record)


def _cell(value: object, path: Path, number: int, column: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str):
        raise OpencseError(f"{path}, row {number}: column '{column}' holds {type(value).__name__}, not text")
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
