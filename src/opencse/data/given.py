"""Text given by a user, converted to a file with a column `text` and one sentence per row."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from opencse.data.documents import DocumentPassage, is_prose, read_passages
from opencse.data.text_column import text_column
from opencse.errors import OpencseError
from opencse.io import demo
from opencse.io.cache import cache_place
from opencse.io.corpus import column_names, content_hash, read_rows, read_texts
from opencse.io.files import replaced_file
from opencse.io.reading import existing

_VERSION = "1"
_LONG = 40  # median words from which on rows are taken for paragraphs
_LEAST = 3  # words of a sentence that is kept of a document


def corpus_file(
    given: Any, *, column: str | None = None, split: bool = True, needed: Collection[str] = frozenset()
) -> Path:
    """Return a corpus with a column `text` that holds a sentence per row.

    A file that is one already comes back as it is. Everything else is written to the cache once: documents and
    paragraphs split into sentences, another column renamed to `text`, texts that are in memory.

    Args:
        given: The path of a corpus or of documents (`opencse.data.documents`), `"demo"`, a list of strings, a pandas
            DataFrame, a `datasets.Dataset` or a pyarrow table.
        column: The column that holds the text; by default the likeliest by its name.
        split: Split the rows of a table into sentences if most are longer than a sentence. The other columns are lost.
        needed: Columns to keep: a table that has one of them is not split.

    Raises:
        OpencseError: It cannot be read, holds no text, or no column is known to hold it.
    """
    if not isinstance(given, str | Path):
        return corpus_file(_table_file(_as_table(given), column), split=split, needed=needed)
    path = existing(demo.corpus(given))
    if is_prose(path):
        return _split(path, column)
    columns = column_names(path)
    name = "text" if column is None and "text" in columns else text_column(columns, path, column)
    if any(each.endswith(".rule") for each in columns):  # `build` wrote this
        return path
    if split and not set(needed) & set(columns) and _in_paragraphs(path, name):
        return _split(path, name)
    return path if name == "text" else _renamed(path, name, columns)


def passages(given: Any, *, column: str | None = None, words: int = 200) -> list[DocumentPassage]:
    """Return what an index would store of a user's texts.

    Args:
        given: As for `corpus_file`.
        column: As for `corpus_file`.
        words: Words of a passage at most.
    """
    if not isinstance(given, str | Path):
        given, column = _table_file(_as_table(given), column), "text"
    found = list(read_passages(demo.corpus(given), column=column, words=words))
    if not found:
        raise OpencseError(f"{given} has no text", "Give documents with at least one sentence.")
    return found


def queries(given: Any, *, most: int = 200) -> list[str]:
    """Return the distinct searches of a file (one per line, or a column `query`) or of a list, evenly spaced."""
    if isinstance(given, str | Path):
        names = column_names(existing(given))
        column = next((name for name in ("query", "queries", "question", "search") if name in names), None)
        found = dict.fromkeys(text.strip() for text in read_texts(given, column or text_column(names, given)))
    else:
        found = dict.fromkeys(text.strip() for text in given if text.strip())
    if not found:
        raise OpencseError(f"{given} has no query", "Give at least one.")
    listed = list(found)
    return listed if len(listed) <= most else [listed[i * len(listed) // most] for i in range(most)]


def given_name(given: Any) -> str:
    """Return how to name a user's texts in a report: the file's name, or what kind of thing they are."""
    return Path(given).name if isinstance(given, str | Path) else f"texts in memory ({type(given).__name__})"


def _in_paragraphs(path: Path, column: str) -> bool:
    """Return whether the rows are longer than sentences are."""
    lengths = [len(text.split()) for text in islice(read_texts(path, column), 1000)]
    return bool(lengths) and median(lengths) > _LONG


def _split(path: Path, column: str | None) -> Path:
    """Yield the sentences of documents, none twice and without headings of one or two words."""

    def sentences() -> Iterator[str]:
        for passage in read_passages(path, column=column):
            yield from (text for text in passage.sentences if len(text.split()) >= _LEAST)

    return _written("sentences", [content_hash(path), column or ""], lambda: {"text": dict.fromkeys(sentences())}, path)


def _renamed(path: Path, column: str, present: Sequence[str]) -> Path:
    """Return the same table, its column named `text`, with all its other columns of text."""

    def columns() -> dict[str, Iterable[str | None]]:
        names = [name for name in present if name == column or (name != "text" and _is_text(path, name))]
        cells = zip(*read_rows(path, names), strict=True)
        return {"text" if name == column else name: each for name, each in zip(names, cells, strict=True)}

    return _written("renamed", [content_hash(path), column], columns, path)


def _is_text(path: Path, column: str) -> bool:
    try:
        return all(True for _ in islice(read_rows(path, (column,)), 100))
    except OpencseError:
        return False


def _written(how: str, key: Sequence[str], columns: Any, source: Path) -> Path:
    """Write a table to the cache, unless it is there."""
    digest = hashlib.blake2b("\0".join([_VERSION, how, *key]).encode(), digest_size=16).hexdigest()
    out = cache_place("inputs", f"{source.stem[:40]}-{digest}.parquet")
    if not out.is_file():
        table = {name: list(cells) for name, cells in columns().items()}
        if not table or not table["text"]:
            raise OpencseError(f"{source} has no sentence", "Give documents with at least one sentence.")
        with replaced_file(out) as temporary:
            pq.write_table(pa.table({name: pa.array(cells, pa.string()) for name, cells in table.items()}), temporary)
    return out


def _as_table(given: Any) -> pa.Table:
    """Return texts in memory as an Arrow table."""
    if isinstance(given, pa.Table):
        return given
    if hasattr(given, "with_format") and hasattr(given, "column_names"):  # a datasets.Dataset
        return given.with_format("arrow")[:]
    if hasattr(given, "to_dict") and hasattr(given, "columns"):  # a pandas DataFrame
        return pa.Table.from_pandas(given, preserve_index=False)
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise OpencseError(
            f"texts of the type {type(given).__name__} cannot be read",
            "Give a path, a list of strings, a pandas DataFrame or a datasets.Dataset.",
        )
    texts = list(given)
    wrong = next((text for text in texts if text is not None and not isinstance(text, str)), None)
    if wrong is not None:
        raise OpencseError(f"a text is {type(wrong).__name__}, not a string: {wrong!r:.60}", "Convert or drop it.")
    return pa.table({"text": pa.array(texts, pa.string())})


def _table_file(table: pa.Table, column: str | None) -> Path:
    """Write the columns of text of a table to the cache, the wanted one as `text`."""
    kinds = {name: table.schema.field(name).type for name in table.column_names}
    texts = [name for name, kind in kinds.items() if _is_string(kind)]
    name = text_column(texts, "the table", column)
    names = [each for each in texts if each == name or each != "text"]
    columns = {"text" if each == name else each: table[each].to_pylist() for each in names}
    digest = hashlib.blake2b(digest_size=16)
    for key, cells in columns.items():
        digest.update(f"{key}\0{len(cells)}\0".encode())
        for cell in cells:
            digest.update(b"\1" if cell is None else cell.encode("utf-8", "surrogatepass") + b"\0")
    return _written("table", [digest.hexdigest()], lambda: columns, Path("texts"))


def _is_string(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view"
