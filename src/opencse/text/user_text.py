"""Text in any form that a user may have, opened as a corpus with a column `text` and one sentence per row."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from opencse.foundation.cache import cache_place, key_hash
from opencse.foundation.errors import OpencseError
from opencse.foundation.files import replaced_file
from opencse.foundation.progress import note
from opencse.foundation.reading import translate_errors
from opencse.text.corpus import Corpus, Row, content_hash, query_column, text_column
from opencse.text.documents import DocumentPassage, Documents, are_sentences, count_words

_QUERIES = 200
_VERSION = 6
_LEAST = 3  # words below which a sentence of a document is a heading


class UserText:
    """A user's text, to be opened as a corpus with a column `text` that holds one sentence per row.

    Args:
        given: The path of a corpus or of documents (`opencse.text.documents`), `"demo"`, a list of strings, a pandas
            DataFrame, a `datasets.Dataset` or a pyarrow table.
        column: The column that holds the text; by default the likeliest by its name.

    Attributes:
        columns: Columns that the text has: those of a table, or `text`.
    """

    def __init__(self, given: Any, column: str | None = None) -> None:
        self._name = _name(given)
        if not isinstance(given, str | Path):
            given, column = _table_file(_as_table(given), column), None
        self._documents, self._column = Documents(given), column
        self._table = None if self._documents.are_prose else Corpus(self._documents.path, self._name)
        self.columns: tuple[str, ...] = ("text",) if self._table is None else tuple(self._table.columns)

    def corpus(self, needed: Collection[str] = frozenset(), *, split: bool = True) -> Corpus:
        """Return the corpus.

        A file of this form is opened as it is. Everything else is converted and kept in the cache: documents, plain
        text and tables are split into sentences unless nine of ten lines or cells are one sentence each, another column
        is renamed to `text`, sentences that repeat are dropped, and texts in memory are written to a file.

        Args:
            needed: A table with one of these columns is not split.
            split: Split the rows of a table into sentences if some are paragraphs; the other columns are lost.

        Raises:
            OpencseError: The text cannot be read, is empty or one sentence only, or is in an unknown column.
        """
        corpus = self._table
        if corpus is None:
            return _split(self._documents, self._column, self._name)
        wanted = text_column(corpus.columns, corpus.path, self._column)
        if any(each.endswith(".rule") for each in corpus.columns):  # `build_views` wrote this
            return corpus
        present = set(corpus.columns)
        kept = set(needed) & present if split else {each for each in present if _is_text(corpus, each)}
        first = list(islice(corpus.texts(wanted), 1000))
        if first and not any(letter.isalpha() for text in first for letter in text):
            raise OpencseError(f"{corpus.name}: no cell of the column {wanted!r} has a letter", "Choose with --column.")
        if split and not kept and not are_sentences(first):
            return _split(self._documents, wanted, self._name)
        return _distinct(corpus, [wanted, *sorted(kept - {"text", wanted})])


def collect_passages(given: Any, *, column: str | None = None, words: int = 200) -> list[DocumentPassage]:
    """Return a user's text as the passages that a search index would store.

    Args:
        given: As for `UserText`.
        column: As for `UserText`.
        words: Maximum number of words in a passage.

    Raises:
        OpencseError: The text cannot be read, is empty, or is in an unknown column.
    """
    name = str(given) if isinstance(given, str | Path) else _name(given)
    if not isinstance(given, str | Path):
        given, column = _table_file(_as_table(given), column), "text"
    found = list(Documents(given).passages(column=column, words=words))
    if not found:
        raise OpencseError(f"{name}: no text", "Give documents with at least one sentence.")
    return found


def collect_queries(given: Any) -> list[str]:
    """Return at most 200 distinct queries, evenly spaced over all.

    Args:
        given: A list of queries, or a file: one per line, or a column `query`, `queries`, `question` or `search`; also
            a DataFrame, `datasets.Dataset` or pyarrow table with such a column.

    Raises:
        OpencseError: The file cannot be read, or there is no query.
    """
    texts: Iterable[str]
    if isinstance(given, str | Path):
        file = Corpus(given)
        texts = file.texts(query_column(file.columns, file.path))
    else:
        table = _as_table(given)
        columns = [field.name for field in table.schema if _is_string(field.type)]
        texts = filter(None, table[query_column(columns, "the table of queries")].to_pylist())
    found = dict.fromkeys(text.strip() for text in texts if text.strip())
    if not found:
        raise OpencseError(f"{given} has no query", "Give at least one.")
    listed = list(found)
    return listed if len(listed) <= _QUERIES else [listed[i * len(listed) // _QUERIES] for i in range(_QUERIES)]


def _name(given: Any) -> str:
    """Return the name of a user's text in reports: the file's name, or the type of an object in memory."""
    return Path(given).name if isinstance(given, str | Path) else f"texts in memory ({type(given).__name__})"


def _split(documents: Documents, column: str | None, name: str) -> Corpus:
    """Write the distinct sentences of documents to the cache, without headings of one or two words."""

    def sentences() -> Iterator[str]:
        for passage in documents.passages(column=column):
            yield from (text for text in passage.sentences if count_words(text) >= _LEAST)

    key = [content_hash(documents.path), column or ""]
    path = _written("sentences", key, lambda: {"text": dict.fromkeys(sentences())}, documents.path)
    note(f"{name}: split into {pq.read_metadata(path).num_rows:,} distinct sentences")
    return Corpus(path, name)


def _distinct(corpus: Corpus, keys: Sequence[str]) -> Corpus:
    """Return a table with its texts in the column `text` and no row that repeats, written to the cache if need be.

    Args:
        corpus: The table.
        keys: The columns in which rows that repeat are equal, the first of them that of the text.
    """
    others = corpus.columns if keys[0] in corpus.columns else ()  # a field within a field gives rows of its own
    others = tuple(name for name in others if name not in ("text", *keys) and _is_text(corpus, name))
    hashes = np.fromiter((hash(row) for row in corpus.rows(keys) if row[0] is not None), np.int64)
    count = len(np.unique(hashes))
    if count == len(hashes) and keys[0] == "text":
        return corpus
    if count < len(hashes):
        note(f"{corpus.name}: {len(hashes) - count:,} of {len(hashes):,} sentences repeat another and are left out")
        if count == 1:
            raise OpencseError(f"{corpus.name} holds one sentence, {len(hashes):,} times", "Give different sentences.")

    def columns() -> dict[str, Iterable[str | None]]:
        rows: dict[Row, Row] = {}
        for row in corpus.rows((*keys, *others)):
            if row[0] is not None:
                rows.setdefault(row[: len(keys)], row)
        cells = zip(*rows.values(), strict=True)
        return dict(zip(("text", *keys[1:], *others), cells, strict=True))

    return Corpus(_written("distinct", [corpus.content_hash, *keys], columns, corpus.path), corpus.name)


def _is_text(corpus: Corpus, column: str) -> bool:
    try:
        return all(True for _ in islice(corpus.rows((column,)), 100))
    except OpencseError:
        return False


def _written(how: str, key: Sequence[str], columns: Any, source: Path) -> Path:
    """Write a table to the cache, unless it is there already."""
    out = cache_place("inputs", f"{source.stem[:40]}-{key_hash([_VERSION, how, *key])}.parquet")
    if not out.is_file():
        table = {name: list(cells) for name, cells in columns().items()}
        if not table or not table["text"]:
            raise OpencseError(f"{source} has no sentence", "Give documents with at least one sentence.")
        with replaced_file(out) as temporary:
            pq.write_table(pa.table({name: pa.array(cells, pa.string()) for name, cells in table.items()}), temporary)
    return out


def _as_table(given: Any) -> pa.Table:
    """Return texts in memory as an Arrow table without dictionary-encoded columns.

    Raises:
        OpencseError: The object is of another type, holds something that is not text, or has two columns of one name.
    """
    place = f"the {type(given).__name__}"
    with translate_errors(place, "cannot be read as a table of texts", "Convert its cells to text.", pa.ArrowException):
        table = _converted(given)
        if len(set(table.column_names)) < len(table.column_names):
            raise OpencseError(f"{place} has two columns of one name", "Rename one of them.")
        for i, field in enumerate(table.schema):
            if pa.types.is_dictionary(field.type):
                table = table.set_column(i, field.name, table[i].cast(field.type.value_type))
        return table
    raise AssertionError


def _converted(given: Any) -> pa.Table:
    if isinstance(given, pa.Table):
        return given
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise OpencseError(
            f"texts of the type {type(given).__name__} cannot be read",
            "Give a path, a list of strings, a pandas DataFrame, or a datasets.Dataset (one split of a DatasetDict).",
        )
    if hasattr(given, "with_format") and hasattr(given, "column_names"):
        if not hasattr(given, "num_rows"):  # a datasets.IterableDataset
            raise OpencseError("a streamed dataset cannot be read more than once", "Load it whole, or write a file.")
        return given.with_format("arrow")[:]
    if hasattr(given, "to_dict") and hasattr(given, "columns"):  # a pandas DataFrame
        return pa.Table.from_pandas(given, preserve_index=False)
    texts = list(given)
    wrong = next((text for text in texts if text is not None and not isinstance(text, str)), None)
    if wrong is not None:
        raise OpencseError(f"a text is {type(wrong).__name__}, not a string: {wrong!r:.60}", "Convert or drop it.")
    return pa.table({"text": pa.array(texts, pa.string())})


def _table_file(table: pa.Table, column: str | None) -> Path:
    """Write the text columns of a table to the cache, the wanted one as `text`."""
    kinds = {name: table.schema.field(name).type for name in table.column_names}
    texts = [name for name, kind in kinds.items() if _is_string(kind)]
    if not texts:
        listed = ", ".join(f"{name} ({kind})" for name, kind in kinds.items())
        raise OpencseError(f"the table has no column of strings: {listed or 'it is empty'}", "Convert one to strings.")
    name = text_column(texts, "the table", column, option="column=")
    names = [each for each in texts if each == name or each != "text"]
    columns = {"text" if each == name else each: table[each].to_pylist() for each in names}
    return _written("table", [key_hash(columns)], lambda: columns, Path("texts"))


def _is_string(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind) or str(kind) == "string_view"
